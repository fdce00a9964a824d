-- title: a leader epoch goes back (conformance 3 I31)
-- severity: warning
-- needs: journal
-- A consumer sent an older leader epoch than before, or none where it had one: the broker cannot detect for it that a log was truncated.
SELECT run, id, topic, partition, client_id, software, software_version, current_leader_epoch, highest_epoch
FROM (
  SELECT *, max(current_leader_epoch) OVER (PARTITION BY run, era, connection, topic, partition ORDER BY id
                                            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS highest_epoch
  FROM fetches WHERE asked_offset IS NOT NULL
)
WHERE current_leader_epoch < highest_epoch
