-- title: a batch's maximum timestamp is not that of its records
-- severity: warning
-- needs: records
-- The header has the highest timestamp of the batch, on which searches by time and retention rely.
SELECT batches.directory, batches.topic, batches.partition, base_offset AS offset, max_timestamp_ms AS header_ms,
       latest_ms AS records_ms, segment, position
FROM batches JOIN (
  SELECT directory, topic, partition, base_offset, max(latest_ms) AS latest_ms
  FROM decoded WHERE damage IS NULL GROUP BY ALL
) USING (directory, topic, partition, base_offset)
JOIN partitions USING (directory, topic, partition)
WHERE damage IS NULL AND magic = 2 AND timestampType = 0 AND latest_ms <> max_timestamp_ms AND base_offset >= cleaned_to
