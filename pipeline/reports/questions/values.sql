-- title: what the values are
-- needs: records
-- Looked at in a sample of the records (`--values`). `schema registry`: a zero byte and a schema's number in front, as the serializers of
-- schema registries write it; the rest is not looked into.
SELECT topic, kind, count(*) AS sampled, count(*) / sum(count(*)) OVER (PARTITION BY topic) AS share,
       min(octet_length(value)) AS least_bytes, avg(octet_length(value)) AS mean_bytes,
       CAST(floor(percentile_cont(0.99) WITHIN GROUP (ORDER BY octet_length(value))) AS BIGINT) AS p99_bytes, max(octet_length(value)) AS most_bytes,
       slice(array_sort(collect_set(schema_number(value))), 1, 10) AS schema_ids
FROM sampled
GROUP BY topic, kind
ORDER BY topic, sampled DESC, kind
