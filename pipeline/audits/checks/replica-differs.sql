-- title: replicas that differ
-- severity: error
-- Two brokers have different batches at the same offset, below the high watermark of both: consumers get different records, depending on
-- the leader. Not checked in cleaned parts, since each broker cleans by itself.
SELECT topic, partition, base_offset AS offset, collect_set(directory) AS directories, collect_set(crc) AS checksums,
       collect_set(last_offset) AS last_offsets
FROM (
  SELECT batches.*, min(least(coalesce(high_watermark, 0), log_end)) OVER (PARTITION BY topic, partition) AS replicated_to
  FROM batches JOIN partitions USING (directory, topic, partition)
  WHERE damage IS NULL AND base_offset >= greatest(log_start, cleaned_to) AND topic <> '__cluster_metadata'
)
WHERE base_offset < replicated_to
GROUP BY topic, partition, base_offset
HAVING count(DISTINCT struct(last_offset, leader_epoch, crc)) > 1
