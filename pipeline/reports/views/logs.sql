-- The longest replica of each selected partition, with its bounds and configuration; Kafka's defaults where the topic has none.
-- `stable_offset`: the last stable offset, beyond which read_committed consumers and the cleaner do not read.
SELECT topic, partition, directory, replicas, log_start, log_end, coalesce(high_watermark, log_end) AS high_watermark,
       least(coalesce(high_watermark, log_end), coalesce(open.first_offset, log_end)) AS stable_offset, last_segment_base,
       CASE WHEN topic = '__cluster_metadata' THEN 'snapshots'  -- its quorum looks after it
            WHEN topic IN ('__consumer_offsets', '__transaction_state') THEN coalesce(cleanup_policy, 'compact')
            ELSE coalesce(cleanup_policy, 'delete') END AS cleanup_policy,
       coalesce(retention_ms, 604800000) AS retention_ms, coalesce(retention_bytes, -1) AS retention_bytes,
       coalesce(min_compaction_lag_ms, 0) AS min_compaction_lag_ms,
       coalesce(min_cleanable_dirty_ratio, CAST(0.5 AS DOUBLE)) AS min_cleanable_dirty_ratio, cleaner_offset
FROM (SELECT *, row_number() OVER (PARTITION BY topic, partition ORDER BY log_end DESC, directory) AS place,
             count(*) OVER (PARTITION BY topic, partition) AS replicas
      FROM partitions JOIN wanted_topics USING (topic))
LEFT JOIN (SELECT directory, topic, partition, cleaner_offset FROM partition_files) USING (directory, topic, partition)
LEFT JOIN (SELECT directory, topic, partition, min(first_offset) AS first_offset FROM transactions
           WHERE marker IS NULL AND first_offset IS NOT NULL GROUP BY ALL) open USING (directory, topic, partition)
LEFT JOIN settings USING (topic)
WHERE place = 1
