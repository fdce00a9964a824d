-- title: replicas that differ
-- severity: error
-- Two brokers have different batches at the same offset, below the high watermark of both: consumers get different records, depending on
-- the leader. Not checked in cleaned parts, since each broker cleans by itself.
WITH shared AS (
  SELECT topic, partition, min(least(coalesce(high_watermark, 0), log_end)) AS replicated_to
  FROM partitions WHERE log_end > greatest(log_start, cleaned_to) AND topic <> '__cluster_metadata'
  GROUP BY topic, partition HAVING count(*) > 1
)
SELECT topic, partition, base_offset AS offset, collect_set(directory) AS directories, collect_set(crc) AS checksums,
       collect_set(last_offset) AS last_offsets
FROM (
  SELECT batches.*, xxhash64(last_offset, leader_epoch, crc) AS content
  FROM batches JOIN partitions USING (directory, topic, partition) JOIN shared USING (topic, partition)
  WHERE damage IS NULL AND base_offset >= greatest(log_start, cleaned_to) AND base_offset < replicated_to
)
GROUP BY topic, partition, base_offset
HAVING min(content) <> max(content)
