-- title: what compaction would remove
-- needs: records
-- If the cleaner ran now, it would remove older records of a key that has a newer one, records without a key, records of aborted
-- transactions, and expired tombstones. It stops at `cleanable_to`: not in the active segment, not beyond the last stable offset, not in
-- records younger than min.compaction.lag.ms. `later_records`: how many more it would remove if the log were rolled here. `removable_bytes`
-- is estimated from the sizes of keys and values. `is_due`: the topic is compacted, and its dirty ratio exceeds its setting.
WITH young AS (
  SELECT topic, partition, min(segment_base) AS segment_base FROM segments JOIN logs USING (topic, partition)
  WHERE NOT is_active AND min_compaction_lag_ms > 0 AND largest_ms > :now_ms - min_compaction_lag_ms
    AND next_base > coalesce(cleaner_offset, log_start)
  GROUP BY ALL
),
bounds AS (
  SELECT logs.*, least(stable_offset, last_segment_base, coalesce(young.segment_base, last_segment_base)) AS bound
  FROM logs LEFT JOIN young USING (topic, partition)
),
reach AS (  -- the cleaner takes whole segments, and begins where it stopped
  SELECT topic, partition, any_value(cleanup_policy) LIKE '%compact%' AS is_compacted, any_value(stable_offset) AS stable_offset,
         coalesce(max(if(segment_base <= bound, segment_base, NULL)), any_value(log_start)) AS cleanable_to,
         any_value(min_cleanable_dirty_ratio) AS least_dirty_ratio, sum(bytes) AS bytes,
         sum(if(segment_base < coalesce(cleaner_offset, log_start), bytes, 0)) AS clean_bytes,
         sum(if(next_base > coalesce(cleaner_offset, log_start) AND next_base <= bound, bytes, 0)) AS dirty_bytes
  FROM (SELECT bounds.*, segment_base, next_base, bytes FROM bounds JOIN segments USING (topic, partition)
        UNION ALL SELECT *, last_segment_base, log_end, 0 FROM bounds)
  GROUP BY ALL
),
due AS (SELECT DISTINCT topic, partition, base_offset AS batch_base_offset FROM batches JOIN logs USING (directory, topic, partition)
        WHERE delete_horizon_ms <= :now_ms),
weighed AS (
  SELECT topic, partition, key, offset, aborted, value_bytes IS NULL AS is_tombstone, due.batch_base_offset IS NOT NULL AS is_due,
         coalesce(octet_length(key), 0) + coalesce(value_bytes, 0) + 10 AS weight, offset < cleanable_to AS now,
         offset < stable_offset AS later
  FROM records JOIN reach USING (topic, partition) LEFT JOIN due USING (topic, partition, batch_base_offset)
),
by_key AS (  -- of each key the newest stays, unless it is a tombstone whose time is over
  SELECT topic, partition, key, count(*) AS records, sum(weight) AS weight,
         count_if(now) AS now_records, sum(if(now, weight, 0)) AS now_weight, count_if(later) AS later_records,
         count_if(now AND aborted) AS aborted, count_if(later AND NOT aborted) AS later_kept,
         coalesce(max_by(if(is_tombstone AND is_due, 0, 1), if(now AND NOT aborted, offset, NULL)), 0) AS stays,
         coalesce(max_by(weight, if(now AND NOT aborted, offset, NULL)), 0) AS newest_weight,
         max(now AND NOT aborted) AS has_newest
  FROM weighed GROUP BY topic, partition, key
),
counted AS (
  SELECT topic, partition, sum(records) AS records, sum(weight) AS weight, sum(aborted) AS aborted,
         sum(if(key IS NULL, now_records - aborted, 0)) AS without_key,
         sum(if(key IS NOT NULL AND has_newest, now_records - aborted - 1, 0)) AS superseded,
         sum(if(key IS NOT NULL AND has_newest AND stays = 0, 1, 0)) AS tombstones,
         sum(if(key IS NULL, now_weight, now_weight - stays * newest_weight)) AS removable_weight,
         sum(later_records - if(key IS NOT NULL AND later_kept > 0, 1, 0)) AS removable_at_all
  FROM by_key GROUP BY topic, partition
)
SELECT topic, partition, is_compacted, records, bytes, superseded + without_key + aborted + tombstones AS removable_records,
       (superseded + without_key + aborted + tombstones) / nullif(records, 0) AS removable_share,
       CAST(floor(bytes * removable_weight / nullif(weight, 0)) AS BIGINT) AS removable_bytes, superseded, tombstones, aborted, without_key,
       greatest(removable_at_all - (superseded + without_key + aborted + tombstones), 0) AS later_records, cleanable_to,
       round(dirty_bytes / nullif(clean_bytes + dirty_bytes, 0), 3) AS dirty_ratio,
       is_compacted AND coalesce(dirty_bytes / nullif(clean_bytes + dirty_bytes, 0) > least_dirty_ratio, false) AS is_due
FROM counted JOIN reach USING (topic, partition)
ORDER BY is_compacted DESC, removable_bytes DESC, topic, partition
