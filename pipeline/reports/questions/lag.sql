-- title: lag of groups
-- Of classic, consumer and streams groups from `__consumer_offsets`: the lag is in offsets, so it includes markers and records that
-- compaction removed. Of share groups from `__share_group_state`: what is not acknowledged, from their start offset on. `lost`: offsets that
-- were deleted before the group read them.
WITH kinds AS (SELECT group_id, max(group_type) AS group_type FROM group_states GROUP BY group_id),
ids AS (SELECT DISTINCT topic_id, topic FROM partitions WHERE topic_id IS NOT NULL),
places AS (
  SELECT committed.group_id, coalesce(group_type, 'classic') AS group_type, topic, partition, committed_offset, 0 AS acknowledged,
         commit_timestamp_ms AS at_ms
  FROM committed LEFT JOIN kinds ON kinds.group_id = committed.group_id
  UNION ALL
  SELECT group_id, 'share', ids.topic, shared_partition, max(if(start_offset >= 0, start_offset, NULL)),
         coalesce(max_by(delivery_complete_count, if(delivery_complete_count >= 0, offset, NULL)), 0), max(write_timestamp_ms)
  FROM (SELECT *, max(run) OVER (PARTITION BY group_id, topic_id, shared_partition) AS last_run,
               bool_or(is_latest AND is_tombstone) OVER (PARTITION BY group_id, topic_id, shared_partition) AS is_gone FROM share_states) share
  JOIN ids ON ids.topic_id = share.topic_id
  WHERE run = last_run AND NOT is_tombstone AND NOT is_gone
  GROUP BY group_id, ids.topic, shared_partition
)
SELECT group_id, group_type, topic, partition, committed_offset, log_start, log_end,
       greatest(log_end - committed_offset - acknowledged, 0) AS lag, greatest(log_start - committed_offset, 0) AS lost,
       if(at_ms BETWEEN 0 AND 253402300799999, timestamp_millis(at_ms), NULL) AS committed_at
FROM places JOIN logs USING (topic, partition)
WHERE committed_offset IS NOT NULL
ORDER BY lag DESC, group_id, topic, partition
