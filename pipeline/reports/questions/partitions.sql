-- title: size of each partition
-- `share`: share of the topic's records. `times_the_mean`: 1 if all partitions have the same number; 0 for an empty partition.
SELECT topic, partition, records, bytes, segments, log_start, log_end, records / nullif(sum(records) OVER whole, 0) AS share,
       records / nullif(avg(records) OVER whole, 0) AS times_the_mean
FROM (SELECT topic, partition, log_start, log_end, coalesce(sum(records), 0) AS records, coalesce(sum(bytes), 0) AS bytes,
             count(segment_base) AS segments
      FROM logs LEFT JOIN segments USING (topic, partition) GROUP BY ALL)
WINDOW whole AS (PARTITION BY topic)
ORDER BY topic, partition
