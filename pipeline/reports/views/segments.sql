-- The non-empty segments of the selected partitions. `largest_ms`: the highest timestamp; null: it has none. `next_base`: the base offset
-- of the next one, or the log end.
SELECT topic, partition, segment_base, is_active, bytes, batches, records, largest_ms,
       coalesce(lead(segment_base) OVER (PARTITION BY topic, partition ORDER BY segment_base),
                if(is_active, log_end, last_segment_base)) AS next_base
FROM (SELECT topic, partition, segment_base, segment_base >= last_segment_base AS is_active, log_end, last_segment_base,
             sum(size) AS bytes, count(*) AS batches, sum(if(is_control, 0, record_count)) AS records,
             max(if(max_timestamp_ms >= 0, max_timestamp_ms, NULL)) AS largest_ms
      FROM batches JOIN logs USING (directory, topic, partition)
      GROUP BY ALL)
