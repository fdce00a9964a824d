-- title: a leader epoch that the metadata do not have
-- severity: error
-- A partition's leader epoch begins with its PartitionRecord, and each change that names a leader adds one. The log or the
-- leader epoch checkpoint has a later epoch: the metadata, or the leader that wrote this, are of another history of the
-- cluster, and the next leader may be given an epoch that was used before.
WITH changes AS (
  SELECT type, offset, from_json(record, 'topic_id STRING, partition_id INT, leader INT, leader_epoch INT') AS fields
  FROM state_metadata WHERE type IN ('PartitionRecord', 'PartitionChangeRecord')
),
known AS (
  SELECT first.topic_id, first.partition, first.leader_epoch + count(later.offset) AS known_epoch
  FROM (SELECT fields.topic_id AS topic_id, fields.partition_id AS partition, max(offset) AS offset,
               max_by(fields.leader_epoch, offset) AS leader_epoch
        FROM changes WHERE type = 'PartitionRecord' GROUP BY ALL) first
  LEFT JOIN changes later ON later.type = 'PartitionChangeRecord' AND coalesce(later.fields.leader, -2) <> -2
    AND later.fields.topic_id = first.topic_id AND later.fields.partition_id = first.partition AND later.offset > first.offset
  GROUP BY first.topic_id, first.partition, first.leader_epoch
),
written AS (
  SELECT directory, topic, partition, leader_epoch, min(base_offset) AS offset, 'a batch' AS what
  FROM batches WHERE damage IS NULL AND leader_epoch > 0 GROUP BY directory, topic, partition, leader_epoch
  UNION ALL
  SELECT directory, topic, partition, epoch, start_offset, 'the leader epoch checkpoint' FROM epochs
)
SELECT written.directory, written.topic, written.partition, min(written.offset) AS offset, max(leader_epoch) AS leader_epoch,
       known_epoch, array_sort(collect_set(what)) AS found_in
FROM written
JOIN partitions ON partitions.directory = written.directory AND partitions.topic = written.topic
  AND partitions.partition = written.partition
JOIN known ON known.topic_id = partitions.topic_id AND known.partition = written.partition
WHERE leader_epoch > known_epoch
GROUP BY written.directory, written.topic, written.partition, known_epoch
