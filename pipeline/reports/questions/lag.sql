-- title: lag of consumer groups
-- From `__consumer_offsets` and the ends of the logs. The lag is in offsets, so it includes markers and records that compaction removed.
-- `lost`: offsets that were deleted before the group read them.
SELECT group_id, topic, partition, committed_offset, log_start, log_end, greatest(log_end - committed_offset, 0) AS lag,
       greatest(log_start - committed_offset, 0) AS lost,
       if(commit_timestamp_ms BETWEEN 0 AND 253402300799999, timestamp_millis(commit_timestamp_ms), NULL) AS committed_at
FROM committed JOIN logs USING (topic, partition)
ORDER BY lag DESC, group_id, topic, partition
