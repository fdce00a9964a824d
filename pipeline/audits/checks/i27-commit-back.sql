-- title: a committed offset goes back (conformance 3 I27)
-- severity: warning
-- needs: journal
-- Within one generation a member committed a lower offset than before. A seek explains that; otherwise records are processed again.
SELECT run, id, topic, partition, committed_offset AS offset, client_id, software, software_version, group_id, member_id,
       generation, highest_offset
FROM (
  SELECT *, max(committed_offset) OVER (PARTITION BY run, era, group_id, member_id, generation, topic, partition ORDER BY id
                                        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS highest_offset
  FROM effective_commits WHERE generation >= 0
)
WHERE committed_offset < highest_offset
