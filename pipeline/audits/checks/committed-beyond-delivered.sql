-- title: committed what it was never given
-- severity: error
-- needs: journal
-- A member committed an offset beyond everything that its group had been given, or had been told about by ListOffsets and
-- OffsetFetch: records in between are skipped for good.
WITH told AS (
  SELECT run, era, topic, partition, id, delivered_to + 1 AS known_to, group_id FROM deliveries
  UNION ALL SELECT run, era, topic, partition, id, offset, group_id
    FROM listed JOIN group_clients USING (run, era, client_host, client_id)
)
SELECT commits.run, commits.id, commits.topic, commits.partition, committed_offset AS offset, commits.group_id,
       commits.client_id, software, member_id, max(known_to) AS given_up_to
FROM commits JOIN told ON told.run = commits.run AND told.era = commits.era AND told.group_id = commits.group_id
  AND told.topic = commits.topic AND told.partition = commits.partition AND told.id < commits.id
WHERE commits.error = 'NONE' AND (generation >= 0 OR api = 'TxnOffsetCommit')
GROUP BY ALL
HAVING committed_offset > max(known_to)
