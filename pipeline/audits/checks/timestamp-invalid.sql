-- title: an invalid timestamp
-- severity: error
-- A timestamp is -1 (none) or not negative, and the highest timestamp of a batch is not before that of its first record.
SELECT directory, topic, partition, base_offset AS offset, base_timestamp_ms, max_timestamp_ms, segment, position
FROM batches JOIN partitions USING (directory, topic, partition)
WHERE damage IS NULL AND magic = 2
  AND (max_timestamp_ms < -1 OR base_timestamp_ms < -1
    OR (timestampType = 0 AND base_timestamp_ms > max_timestamp_ms AND base_offset >= cleaned_to))
