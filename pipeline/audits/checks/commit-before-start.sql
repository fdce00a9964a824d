-- title: a committed offset before the log's start
-- severity: info
-- Retention or DeleteRecords has removed records that the group had not read: it is reset by `auto.offset.reset`, to the start or, without
-- them, to the end. `lost_offsets` includes those of markers and of records that compaction had removed.
SELECT directory, topic, partition, committed_offset AS offset, group_id, log_start, log_start - committed_offset AS lost_offsets
FROM committed JOIN (
  SELECT topic, partition, max_by(log_start, log_end) AS log_start, max_by(directory, log_end) AS directory
  FROM partitions GROUP BY topic, partition
) logs USING (topic, partition)
WHERE committed_offset >= 0 AND committed_offset < log_start
