-- title: a malformed transaction marker
-- severity: error
-- A control batch of a partition has exactly one record, is transactional, is COMMIT or ABORT, and has its coordinator's epoch and the
-- offset and timestamp of its batch. The cleaner may remove the record, and keep the batch for its producer state.
SELECT batches.directory, topic, partition, base_offset AS offset, producer_id, control_type, record_count, is_transactional,
       segment, position
FROM batches JOIN partitions USING (directory, topic, partition)
WHERE is_control AND damage IS NULL AND topic <> '__cluster_metadata'
  AND (record_count > 1 OR NOT is_transactional OR (record_count = 0 AND base_offset >= cleaned_to)
    OR (record_count = 1 AND (coalesce(coordinator_epoch, -1) < 0 OR coalesce(control_type, '') NOT IN ('COMMIT', 'ABORT')
      OR base_timestamp_ms <> max_timestamp_ms)))
