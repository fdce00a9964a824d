-- title: delivered again after it was committed
-- severity: warning
-- needs: journal
-- A group received records that it had received before, and whose offsets it had committed in between: it went back, and processes them
-- twice. (Redeliveries before the commit are `redelivered`: that is what "at least once" means.)
SELECT again.run, again.id, again.topic, again.partition, delivered_from AS offset, again.group_id, again.client_id,
       again.software, least(delivered_to, given_before_to) AS up_to, max(commits.committed_offset) AS committed_offset
FROM deliveries again
JOIN effective_commits commits ON commits.run = again.run AND commits.era = again.era AND commits.group_id = again.group_id
  AND commits.topic = again.topic AND commits.partition = again.partition
  AND commits.end_us < again.ts_us AND commits.committed_offset > again.delivered_from
WHERE delivered_from <= given_before_to
GROUP BY ALL
