-- title: what the values are
-- needs: records
-- Looked at in a sample of the records (`--values`). `schema registry`: a zero byte and a schema's number in front, as the serializers of
-- schema registries write it; the rest is not looked into.
SELECT topic, kind, count(*) AS sampled, count(*) / sum(count(*)) OVER (PARTITION BY topic) AS share,
       min(length(value)) AS least_bytes, avg(length(value)) AS mean_bytes,
       percentile_approx(length(value), 0.99) AS p99_bytes, max(length(value)) AS most_bytes,
       slice(array_sort(collect_set(if(kind = 'schema registry', conv(hex(substring(value, 2, 4)), 16, 10), NULL))), 1, 10) AS schema_ids
FROM sampled
GROUP BY topic, kind
ORDER BY topic, sampled DESC
