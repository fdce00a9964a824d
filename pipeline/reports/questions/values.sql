-- title: kinds of values
-- needs: records
-- From a sample of the records (`--values`). `schema registry`: the value begins with a zero byte and a schema id, as the serializers of
-- schema registries write it; the rest is not decoded.
SELECT topic, kind, count(*) AS sampled, count(*) / sum(count(*)) OVER (PARTITION BY topic) AS share,
       min(octet_length(value)) AS least_bytes, avg(octet_length(value)) AS mean_bytes,
       CAST(floor(percentile_cont(0.99) WITHIN GROUP (ORDER BY octet_length(value))) AS BIGINT) AS p99_bytes, max(octet_length(value)) AS most_bytes,
       slice(array_sort(collect_set(schema_number(value))), 1, 10) AS schema_ids
FROM sampled
GROUP BY topic, kind
ORDER BY topic, sampled DESC, kind
