-- title: a malformed transaction marker
-- severity: error
-- A control batch of a partition holds exactly one record, is transactional, is COMMIT or ABORT, and has its coordinator's epoch;
-- and has the offset and the time of its batch.
SELECT directory, topic, partition, base_offset AS offset, producer_id, control_type, record_count, is_transactional,
       segment, position
FROM batches
WHERE is_control AND damage IS NULL AND topic <> '__cluster_metadata'
  AND (record_count <> 1 OR coalesce(coordinator_epoch, -1) < 0 OR NOT is_transactional OR coalesce(control_type, '') NOT IN ('COMMIT', 'ABORT')
    OR base_timestamp_ms <> max_timestamp_ms)
