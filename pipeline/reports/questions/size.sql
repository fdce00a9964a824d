-- title: size of each topic
-- One row per topic. `bytes`: size on disk of one replica of each partition, compressed if the producers compressed; `per_day_bytes`: the
-- average between the first and the last record.
SELECT topic, count(DISTINCT partition) AS partitions, max(replicas) AS replicas,
       count(DISTINCT struct(partition, segment_base)) FILTER (WHERE segment_base IS NOT NULL) AS segments,
       sum(if(is_control, 0, record_count)) AS records, sum(size) AS bytes, sum(size) / nullif(sum(sum(size)) OVER (), 0) AS share,
       sum(size) / nullif(sum(if(is_control, 0, record_count)), 0) AS per_record_bytes,
       sum(if(is_control, 0, record_count)) / nullif(count_if(NOT is_control), 0) AS records_per_batch,
       array_join(sort_array(collect_set(if(is_control, NULL, codec))), ', ') AS codecs,
       timestamp_millis(min(time_ms)) AS first_at, timestamp_millis(max(time_ms)) AS last_at,
       sum(size) * 86400000 / nullif(max(time_ms) - min(time_ms), 0) AS per_day_bytes
FROM (SELECT *, if(max_timestamp_ms BETWEEN 0 AND 253402300799999, max_timestamp_ms, NULL) AS time_ms FROM batches)
JOIN logs USING (directory, topic, partition)
GROUP BY topic
ORDER BY bytes DESC, topic
