-- title: a checkpoint does not fit the log
-- severity: error
-- The recovery point and the log start are within the log, the cleaner never reaches the active segment, and no offset is negative. A high
-- watermark is at a batch boundary, and after a clean shutdown not below the log start, nor below the log end of a partition that never had
-- another replica; then the recovery points are the log ends.
-- Otherwise the log has lost its end, or the checkpoint belongs to another log.
SELECT directory, topic, partition, offset, file, log_end, last_segment_base
FROM checkpoints JOIN partitions USING (directory, topic, partition)
LEFT JOIN (SELECT directory, is_clean FROM brokers) brokers USING (directory)
WHERE offset < 0 OR (NOT is_damaged AND CASE file
  WHEN 'cleaner-offset-checkpoint' THEN offset > last_segment_base
  WHEN 'replication-offset-checkpoint' THEN (offset < CASE WHEN is_only_replica THEN log_end ELSE log_start END AND log_start <= log_end AND coalesce(is_clean, false))
    OR EXISTS (SELECT 1 FROM batches WHERE batches.directory = checkpoints.directory AND batches.topic = checkpoints.topic
               AND batches.partition = checkpoints.partition AND batches.base_offset < checkpoints.offset AND batches.last_offset >= checkpoints.offset AND magic = 2)
  WHEN 'recovery-point-offset-checkpoint' THEN offset > log_end OR (offset < log_end AND coalesce(is_clean, false))
  ELSE offset > log_end END)
