-- title: a replica moves to another log directory
-- severity: info
-- A folder `-future`: `kafka-reassign-partitions.sh` moves the replica here from another log directory of its broker (KIP-113). No client reads
-- it before it has all records and takes the place of `from_directory`; null: that one is not here. An audit reads only the latter.
SELECT futures.directory, futures.topic, futures.partition, futures.folder, futures.bytes, current.directory AS from_directory
FROM futures LEFT JOIN (SELECT directory, max(node_id) AS node_id FROM brokers GROUP BY directory) own ON own.directory = futures.directory
LEFT JOIN (
  SELECT partitions.directory, partitions.topic, partitions.partition, max(node_id) AS node_id
  FROM partitions JOIN brokers ON brokers.directory = partitions.directory GROUP BY ALL
) current ON current.topic = futures.topic AND current.partition = futures.partition AND current.node_id = own.node_id
