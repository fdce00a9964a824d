-- title: a partition in two directories of one broker
-- severity: error
-- A broker with several log directories (`log.dirs`) has each partition in one of them. It refuses to start with both; an older release
-- continues with one of them, and the records of the other are lost.
SELECT directory, topic, partition, node_id, first_directory AS other_directory
FROM (
  SELECT partitions.directory, topic, partition, node_id,
         min(partitions.directory) OVER (PARTITION BY node_id, topic, partition) AS first_directory
  FROM partitions JOIN brokers USING (directory)
)
WHERE directory <> first_directory
