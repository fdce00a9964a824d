-- title: a committed offset of a client goes back
-- severity: warning
-- needs: history
-- Within one assignment the client committed a lower offset than before: after a failure, records are processed again.
SELECT topic, partition, offset, client, group_id, run, highest_offset, file, line
FROM (SELECT *, max(offset) OVER (PARTITION BY client, group_id, topic, partition, run ORDER BY number
                                  ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS highest_offset
      FROM client_events WHERE event = 'committed') ordered_commits
WHERE offset < highest_offset
