-- title: a checkpoint does not fit the log
-- severity: error
-- The recovery point and the log start lie within the log, the cleaner never reaches the active segment, and no offset is
-- negative. A broker that stopped cleanly has its recovery points at the ends of the logs. Otherwise the log has lost its end, or the checkpoint is that of another log.
SELECT directory, topic, partition, offset, file, log_end, last_segment_base
FROM checkpoints JOIN partitions USING (directory, topic, partition)
LEFT JOIN (SELECT directory, is_clean FROM brokers) brokers USING (directory)
WHERE offset < 0 OR (NOT is_damaged AND CASE file
  WHEN 'cleaner-offset-checkpoint' THEN offset > last_segment_base
  WHEN 'replication-offset-checkpoint' THEN false
  WHEN 'recovery-point-offset-checkpoint' THEN offset > log_end OR (offset < log_end AND coalesce(is_clean, false))
  ELSE offset > log_end END)
