-- title: an offset committed beyond the delivered records
-- severity: error
-- needs: journal
-- A member committed an offset beyond everything that its group had received, or had learned from ListOffsets and OffsetFetch: records in
-- between are skipped permanently.
WITH known AS (
  SELECT run, era, topic, partition, id, delivered_to + 1 AS known_to, group_id FROM deliveries
  UNION ALL SELECT run, era, topic, partition, id, offset, group_id
    FROM listed JOIN group_clients USING (run, era, client_host, client_id)
)
SELECT commits.run, commits.id, commits.topic, commits.partition, committed_offset AS offset, commits.group_id,
       commits.client_id, software, member_id, max(known_to) AS given_up_to
FROM commits JOIN known ON known.run = commits.run AND known.era = commits.era AND known.group_id = commits.group_id
  AND known.topic = commits.topic AND known.partition = commits.partition AND known.id < commits.id
WHERE commits.error = 'NONE' AND (generation >= 0 OR api = 'TxnOffsetCommit')
GROUP BY ALL
HAVING committed_offset > max(known_to)
