-- title: a batch has lost records
-- severity: error
-- A producer's batch has a record for each of its offsets; only the cleaner removes records, or writes a delete horizon. It has not
-- processed this part of the log.
SELECT directory, topic, partition, base_offset AS offset, last_offset - base_offset + 1 AS offsets, record_count,
       delete_horizon_ms, segment, position
FROM batches JOIN partitions USING (directory, topic, partition)
WHERE damage IS NULL AND magic = 2 AND base_offset >= cleaned_to
  AND (record_count < last_offset - base_offset + 1 OR delete_horizon_ms IS NOT NULL)
