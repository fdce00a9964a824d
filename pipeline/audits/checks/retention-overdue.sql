-- title: segments that retention should have removed
-- severity: info
-- The newest record of the metadata log is more than an hour behind the time at which the topic's own retention.ms ends for these closed
-- segments, below the high watermark, and all before them: the broker was not running since, its cleanup fails, or the records were old
-- when they were written.
WITH own AS (
  SELECT topic, name, max_by(value, offset) AS value FROM topic_settings WHERE name IN ('retention.ms', 'cleanup.policy') GROUP BY ALL
),
limits AS (
  SELECT topic, try_cast(value AS BIGINT) AS retention_ms FROM own
  WHERE name = 'retention.ms' AND topic NOT IN (SELECT topic FROM own WHERE name = 'cleanup.policy' AND NOT value LIKE '%delete%')
),
alive AS (
  SELECT directory, max(max_timestamp_ms) AS newest_ms FROM batches WHERE topic = '__cluster_metadata' AND damage IS NULL GROUP BY directory
),
segments AS (
  SELECT directory, topic, partition, segment_base, max(segment) AS segment, max(max_timestamp_ms) AS largest_ms, max(last_offset) AS last_offset,
         max(damage) AS damage
  FROM batches GROUP BY directory, topic, partition, segment_base
),
judged AS (
  SELECT segments.*, retention_ms, newest_ms,
         bool_and(damage IS NULL AND largest_ms >= 0 AND segment_base < last_segment_base AND last_offset < high_watermark
                  AND newest_ms - largest_ms - retention_ms > 3600000)
           OVER (PARTITION BY directory, topic, partition ORDER BY segment_base) AS is_overdue
  FROM segments JOIN partitions USING (directory, topic, partition) JOIN limits USING (topic) JOIN alive USING (directory)
  WHERE retention_ms >= 0
)
SELECT directory, topic, partition, segment_base AS offset, largest_ms, retention_ms, newest_ms - largest_ms - retention_ms AS overdue_ms, segment
FROM judged WHERE is_overdue
