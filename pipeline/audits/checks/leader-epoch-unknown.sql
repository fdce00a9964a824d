-- title: a leader epoch that the metadata does not have
-- severity: error
-- A partition's leader epoch starts with its PartitionRecord, and each change that names a leader increments it. The log or the leader
-- epoch checkpoint has a later epoch, or a marker names a coordinator of a later epoch than any partition of `__transaction_state` had: the
-- metadata, or the leader that wrote this, belong to another history of the cluster, and the next leader may get an epoch that was used before.
WITH written AS (
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
JOIN leader_epochs ON leader_epochs.topic_id = partitions.topic_id AND leader_epochs.partition = written.partition
WHERE leader_epoch > known_epoch
GROUP BY written.directory, written.topic, written.partition, known_epoch
UNION ALL
SELECT directory, topic, partition, min(base_offset), max(coordinator_epoch), known_epoch, array_sort(collect_set('the coordinator of a marker'))
FROM produced CROSS JOIN (
  SELECT max(leader_epochs.known_epoch) AS known_epoch FROM leader_epochs JOIN metadata_topics ON metadata_topics.topic_id = leader_epochs.topic_id
  WHERE metadata_topics.topic = '__transaction_state') known
WHERE is_control AND coordinator_epoch > known_epoch
GROUP BY directory, topic, partition, known_epoch
