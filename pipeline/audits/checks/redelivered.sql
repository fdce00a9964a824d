-- title: delivered again before it was committed
-- severity: info
-- needs: journal
-- A group received records again that it had not committed: after a crash or a rebalance that is normal, and what "at least once" means. An
-- application that must count each record once has to handle it.
SELECT again.run, again.id, again.topic, again.partition, delivered_from AS offset, again.group_id, again.client_id,
       again.software, least(delivered_to, given_before_to) AS up_to
FROM deliveries again
WHERE delivered_from <= given_before_to AND NOT EXISTS (
  SELECT 1 FROM effective_commits commits
  WHERE commits.run = again.run AND commits.era = again.era AND commits.group_id = again.group_id
    AND commits.topic = again.topic AND commits.partition = again.partition
    AND commits.end_us < again.ts_us AND commits.committed_offset > again.delivered_from)
