-- title: share state for offsets or a partition that do not exist
-- severity: error
-- Its start offset, records that it contains, or as many as it counts as delivered are beyond the log end, the topic has no such
-- partition, or the partition never had the leader epoch. Share consumers will miss what is written until then, or their leader is refused.
SELECT logs.topic, share_states.shared_partition AS partition, start_offset AS offset, share_states.group_id,
       greatest(start_offset + greatest(delivery_complete_count, 0), array_max(transform(batches, each -> each.last_offset + 1))) AS reaches, log_end,
       'beyond the end of the log' AS what
FROM share_states
JOIN (SELECT topic, partition, topic_id, max(log_end) AS log_end FROM partitions GROUP BY ALL) logs
  ON logs.topic_id = share_states.topic_id AND logs.partition = share_states.shared_partition
WHERE is_latest AND NOT is_tombstone
  AND greatest(start_offset + greatest(delivery_complete_count, 0), coalesce(array_max(transform(batches, each -> each.last_offset + 1)), start_offset)) > log_end
UNION ALL
SELECT metadata_topics.topic, shared_partition, start_offset, group_id, CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), 'no such partition'
FROM share_states JOIN metadata_topics ON metadata_topics.topic_id = share_states.topic_id
WHERE is_latest AND NOT is_tombstone AND NOT EXISTS (
  SELECT 1 FROM metadata_partitions there WHERE there.topic_id = share_states.topic_id AND there.partition = share_states.shared_partition)
UNION ALL
SELECT metadata_topics.topic, shared_partition, start_offset, group_id, CAST(leader_epoch AS BIGINT), CAST(known_epoch AS BIGINT), 'an unknown leader epoch'
FROM share_states JOIN metadata_topics ON metadata_topics.topic_id = share_states.topic_id
JOIN leader_epochs ON leader_epochs.topic_id = share_states.topic_id AND leader_epochs.partition = shared_partition
WHERE is_latest AND NOT is_tombstone AND leader_epoch > known_epoch
