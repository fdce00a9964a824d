-- title: what retention would remove
-- With the topic's own settings, or with `--retention-ms` and `--retention-bytes` instead, at `--at` (default: now). Kafka removes whole
-- segments, the oldest first: by size while the rest is not smaller than retention.bytes, by time up to the first segment that has a record
-- within retention.ms. Topics that are only compacted lose nothing. Segments without any timestamp stay.
WITH limited AS (
  SELECT segments.*, cleanup_policy, log_start, high_watermark,
         coalesce(CAST(:retention_ms AS BIGINT), retention_ms) AS retention_ms,
         coalesce(CAST(:retention_bytes AS BIGINT), retention_bytes) AS retention_bytes,
         sum(bytes) OVER (PARTITION BY topic, partition) AS all_bytes,
         sum(bytes) OVER (PARTITION BY topic, partition ORDER BY segment_base) AS bytes_so_far
  FROM segments JOIN logs USING (topic, partition)
),
judged AS (
  SELECT *, cleanup_policy LIKE '%delete%' AND retention_bytes >= 0 AND bytes_so_far <= all_bytes - retention_bytes AS by_size,
         cleanup_policy LIKE '%delete%' AND retention_ms >= 0 AND coalesce(:now_ms - largest_ms > retention_ms, false) AS by_time,
         next_base <= log_start AND NOT is_active AS by_start
  FROM limited
),
decided AS (
  SELECT *, bool_and((by_size OR by_time OR by_start) AND next_base <= high_watermark)
              OVER (PARTITION BY topic, partition ORDER BY segment_base) AS goes
  FROM judged
)
SELECT topic, partition, cleanup_policy, retention_ms, retention_bytes, sum(bytes) AS bytes, count(*) AS segments,
       count_if(goes) AS removed_segments, sum(if(goes, records, 0)) AS removed_records, sum(if(goes, bytes, 0)) AS removed_bytes,
       sum(if(goes, bytes, 0)) / nullif(sum(bytes), 0) AS removed_share, sum(if(goes AND by_size, bytes, 0)) AS by_size_bytes,
       max(log_start) AS log_start, greatest(max(log_start), coalesce(max(if(goes, next_base, NULL)), 0)) AS new_log_start,
       timestamp_millis(min(if(goes OR largest_ms > 253402300799999, NULL, largest_ms))) AS oldest_segment_left_at
FROM decided
GROUP BY topic, partition, cleanup_policy, retention_ms, retention_bytes
ORDER BY removed_bytes DESC, topic, partition
