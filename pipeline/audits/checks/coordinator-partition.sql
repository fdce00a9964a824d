-- title: a coordinator's record in the wrong partition
-- severity: error
-- A group, a transactional id, or a share partition (`group:topic id:partition`) belongs to the partition that its name hashes to (Java's
-- `String.hashCode`, of UTF-16: a character beyond 65535 counts as two; its absolute value). No coordinator will find it in another partition.
WITH named AS (
  SELECT '__consumer_offsets' AS topic, partition, offset, group_id AS name FROM state_offsets
  UNION SELECT '__consumer_offsets', partition, offset, group_id FROM state_groups
  UNION SELECT '__consumer_offsets', partition, offset, group_id FROM state_group_records
  UNION SELECT '__share_group_state', partition, offset, concat(group_id, ':', topic_id, ':', shared_partition) FROM state_share
  UNION SELECT '__transaction_state', partition, offset, transactional_id FROM state_transactions
),
placed AS (
  SELECT topic, name, hash_of_name(name) % count AS right_partition
  FROM (SELECT DISTINCT topic, name FROM named)
  JOIN (SELECT topic, count(*) AS count FROM metadata_partitions GROUP BY topic HAVING count(*) > 1) counts USING (topic)
)
SELECT topic, partition, offset, name, right_partition
FROM named JOIN placed USING (topic, name)
WHERE partition <> right_partition
