-- title: topics with unevenly filled partitions
-- One row per topic with several partitions, the most uneven first. `most_times_the_mean` decides how long one consumer works while the
-- others have nothing to do. See `hot-keys` for the reason.
SELECT topic, count(*) AS partitions, count_if(records = 0) AS empty_partitions, sum(records) AS records,
       max_by(partition, (records, -partition)) AS fullest_partition, max(records) AS most_records,
       max(records) / nullif(avg(records), 0) AS most_times_the_mean, min(records) AS fewest_records,
       stddev_pop(records) / nullif(avg(records), 0) AS spread
FROM (SELECT topic, partition, coalesce(sum(records), 0) AS records
      FROM logs LEFT JOIN segments USING (topic, partition) GROUP BY topic, partition)
GROUP BY topic
HAVING count(*) > 1
ORDER BY most_times_the_mean DESC NULLS LAST, topic
