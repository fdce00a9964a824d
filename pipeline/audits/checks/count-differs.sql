-- title: more or fewer records in the output than in the input
-- severity: error
-- needs: counts
-- The output topics have more or fewer records of one time bucket than the input topics: some were lost or duplicated. Timestamps count, so
-- the application must keep those of its inputs, as Kafka Streams does by default. Only committed records count, and a bucket is compared
-- only once its own length has passed after its end. Buckets truncated by retention are left out.
SELECT timestamp_micros(bucket_ms * 1000) AS bucket, bucket_ms, outputs, inputs, outputs - inputs AS surplus
FROM (SELECT bucket_ms, max(bucket_end_ms - bucket_ms) AS width_ms, sum(if(role = 'input', records, 0)) AS inputs,
             sum(if(role = 'output', records, 0)) AS outputs
      FROM record_counts WHERE role IS NOT NULL GROUP BY bucket_ms) buckets
WHERE inputs <> outputs AND bucket_ms + 2 * width_ms <= now_ms()
  AND bucket_ms >= coalesce((SELECT max(from_ms) FROM counted_from WHERE role IS NOT NULL), bucket_ms)
