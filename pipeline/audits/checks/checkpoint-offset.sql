-- title: a checkpoint does not fit the log
-- severity: error
-- The recovery point and the log start lie within the log, the cleaner never reaches the active segment, and no offset is
-- negative. Otherwise the log has lost its end, or the checkpoint is that of another log.
SELECT checkpoints.directory, topic, partition, offset, file, log_end, last_segment_base
FROM checkpoints JOIN partitions USING (directory, topic, partition)
WHERE offset < 0 OR (NOT is_damaged AND CASE file
  WHEN 'cleaner-offset-checkpoint' THEN offset > last_segment_base
  WHEN 'replication-offset-checkpoint' THEN false
  ELSE offset > log_end END)
