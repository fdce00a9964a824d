-- title: segments that retention should have removed
-- severity: info
-- The newest record of the metadata log is more than an hour behind the time at which the topic's own retention.ms ends for these closed
-- segments, below the high watermark, and all before them; or an hour behind the newest record of a log whose segments behind these have
-- retention.bytes without them. The broker was not running since, its cleanup fails, or the records were old when they were written.
WITH own AS (
  SELECT topic, name, max_by(value, offset) AS value FROM topic_settings WHERE name IN ('retention.ms', 'retention.bytes', 'cleanup.policy') GROUP BY ALL
),
limits AS (
  SELECT topic, max(if(name = 'retention.ms', try_cast(value AS BIGINT), NULL)) AS retention_ms,
         max(if(name = 'retention.bytes', try_cast(value AS BIGINT), NULL)) AS retention_bytes
  FROM own WHERE topic NOT IN (SELECT topic FROM own WHERE name = 'cleanup.policy' AND NOT value LIKE '%delete%') GROUP BY topic
),
alive AS (
  SELECT directory, max(max_timestamp_ms) AS newest_ms FROM batches WHERE topic = '__cluster_metadata' AND damage IS NULL GROUP BY directory
),
segments AS (
  SELECT directory, topic, partition, segment_base, max(segment) AS segment, max(max_timestamp_ms) AS largest_ms, max(last_offset) AS last_offset, sum(size) AS bytes,
         max(damage) AS damage
  FROM batches GROUP BY directory, topic, partition, segment_base
),
ahead AS (
  SELECT *, sum(bytes) OVER (PARTITION BY directory, topic, partition) - sum(bytes) OVER behind AS bytes_behind,
         max(largest_ms) OVER (PARTITION BY directory, topic, partition) AS latest_ms
  FROM segments
  WINDOW behind AS (PARTITION BY directory, topic, partition ORDER BY segment_base)
),
judged AS (
  SELECT ahead.*, retention_ms, retention_bytes, newest_ms,
         bool_and(damage IS NULL AND largest_ms >= 0 AND segment_base < last_segment_base AND last_offset < high_watermark
                  AND (coalesce(retention_ms >= 0 AND newest_ms - largest_ms - retention_ms > 3600000, false)
                       OR coalesce(retention_bytes >= 0 AND bytes_behind >= retention_bytes AND newest_ms - latest_ms > 3600000, false)))
           OVER (PARTITION BY directory, topic, partition ORDER BY segment_base) AS is_overdue
  FROM ahead JOIN partitions USING (directory, topic, partition) JOIN limits USING (topic) JOIN alive USING (directory)
)
SELECT directory, topic, partition, segment_base AS offset, largest_ms, retention_ms, newest_ms - largest_ms - retention_ms AS overdue_ms,
       retention_bytes, bytes_behind, segment
FROM judged WHERE is_overdue
