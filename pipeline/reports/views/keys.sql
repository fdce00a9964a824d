-- Every key of a topic: number of records, bytes of values, number of partitions, and the partition with the most records.
SELECT topic, key, sum(records) AS records, sum(value_bytes) AS value_bytes, count(*) AS partitions,
       max_by(partition, (records, -partition)) AS main_partition, max(newest_ms) AS newest_ms
FROM (SELECT topic, partition, key, count(*) AS records, sum(coalesce(value_bytes, 0)) AS value_bytes,
             max(timestamp_ms) AS newest_ms
      FROM records GROUP BY topic, partition, key)
GROUP BY topic, key
