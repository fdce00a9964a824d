-- title: distribution of records over keys
-- needs: records
-- One row per topic. `keys_of_half`: how many keys have half of the records. `scattered_keys` are in more than one partition, so the order
-- of their records is lost. Causes are a changed number of partitions, two partitioners, or records that were sent to a partition by
-- number.
WITH ranked AS (
  SELECT topic, records, partitions, sum(records) OVER (PARTITION BY topic) AS total,
         sum(records) OVER (PARTITION BY topic ORDER BY records DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
  FROM keys WHERE key IS NOT NULL
),
without AS (SELECT topic, sum(if(key IS NULL, records, 0)) AS without_key, sum(records) AS records FROM keys GROUP BY topic)
SELECT topic, max(without.records) AS records, max(without_key) AS without_key, count(ranked.records) AS keys,
       max(ranked.records) / nullif(max(without.records), 0) AS hottest_share,
       coalesce(count_if(coalesce(before, 0) < total / 2), 0) AS keys_of_half,
       coalesce(count_if(partitions > 1), 0) AS scattered_keys
FROM without LEFT JOIN ranked USING (topic)
GROUP BY topic
ORDER BY hottest_share DESC NULLS LAST, topic
