-- title: topics with unevenly filled partitions
-- needs: records
-- One row per topic with several partitions, the most uneven first, with its hottest key. `most_times_the_mean` decides how long one consumer
-- works while the others have nothing to do. `hot-keys` has more keys.
WITH filled AS (
  SELECT topic, partition, coalesce(sum(records), 0) AS records
  FROM logs LEFT JOIN segments USING (topic, partition) GROUP BY topic, partition
),
hottest AS (
  SELECT topic, shown_bytes(key) AS hottest_key, records AS hottest_records, main_partition
  FROM (SELECT *, row_number() OVER (PARTITION BY topic ORDER BY records DESC, value_bytes DESC, key) AS place FROM keys WHERE key IS NOT NULL)
  WHERE place = 1
)
SELECT topic, count(*) AS partitions, count_if(filled.records = 0) AS empty_partitions, sum(filled.records) AS records,
       max_by(filled.partition, (filled.records, -filled.partition)) AS fullest_partition, max(filled.records) AS most_records,
       max(filled.records) / nullif(avg(filled.records), 0) AS most_times_the_mean, min(filled.records) AS fewest_records,
       stddev_pop(filled.records) / nullif(avg(filled.records), 0) AS spread, max(hottest_key) AS hottest_key,
       max(hottest_records) / nullif(sum(filled.records), 0) AS hottest_share, max(main_partition) AS hottest_partition
FROM filled LEFT JOIN hottest USING (topic)
GROUP BY topic
HAVING count(*) > 1
ORDER BY most_times_the_mean DESC NULLS LAST, topic
