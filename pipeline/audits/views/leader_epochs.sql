-- The latest leader epoch of each partition in the metadata: that of its PartitionRecord, incremented by each later change that names a
-- leader (PartitionRegistration.merge).
WITH changes AS (
  SELECT type, offset, from_json(record, 'topic_id STRING, partition_id INT, leader INT, leader_epoch INT') AS fields
  FROM state_metadata WHERE type IN ('PartitionRecord', 'PartitionChangeRecord')
)
SELECT first.topic_id, first.partition, first.leader_epoch + count(later.offset) AS known_epoch
FROM (SELECT fields.topic_id AS topic_id, fields.partition_id AS partition, max(offset) AS offset,
             max_by(fields.leader_epoch, offset) AS leader_epoch
      FROM changes WHERE type = 'PartitionRecord' GROUP BY ALL) first
LEFT JOIN changes later ON later.type = 'PartitionChangeRecord' AND coalesce(later.fields.leader, -2) <> -2
  AND later.fields.topic_id = first.topic_id AND later.fields.partition_id = first.partition AND later.offset > first.offset
GROUP BY first.topic_id, first.partition, first.leader_epoch
