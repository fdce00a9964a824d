-- title: a marker that is none
-- severity: error
-- A control batch of a partition holds exactly one record, is transactional, and says COMMIT or ABORT.
SELECT directory, topic, partition, base_offset AS offset, producer_id, control_type, record_count, is_transactional,
       segment, position
FROM batches
WHERE is_control AND damage IS NULL AND topic <> '__cluster_metadata'
  AND (record_count <> 1 OR NOT is_transactional OR coalesce(control_type, '') NOT IN ('COMMIT', 'ABORT'))
  AND NOT coalesce(control_type, '') IN ('LEADER_CHANGE', 'KRAFT_VERSION', 'KRAFT_VOTERS')
