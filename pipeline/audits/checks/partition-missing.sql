-- title: a partition's directory is gone
-- severity: error
-- According to the metadata this broker has a replica of the partition, but there is no directory: its records are lost here, and a broker
-- that starts begins with an empty log. With several log directories, it is in none of them: checked if as many are present as the broker
-- registered; that of the metadata (`metadata.log.dir`) does not count.
SELECT min(brokers.directory) AS directory, topic, metadata_partitions.partition, replicas
FROM metadata_partitions JOIN brokers ON array_contains(replicas, try_cast(node_id AS INT))
LEFT JOIN (
  SELECT fields.broker_id AS broker_id, max_by(fields.log_dirs, offset) AS log_dirs
  FROM (SELECT offset, from_json(record, 'broker_id INT, log_dirs ARRAY<STRING>') AS fields FROM state_metadata
        WHERE type IN ('RegisterBrokerRecord', 'BrokerRegistrationChangeRecord'))
  WHERE size(fields.log_dirs) > 0 GROUP BY 1
) registrations ON registrations.broker_id = try_cast(node_id AS INT)
WHERE (log_dirs IS NULL OR brokers.directory_id IS NULL OR array_contains(log_dirs, brokers.directory_id))
  AND NOT EXISTS (SELECT 1 FROM partitions JOIN brokers own ON own.directory = partitions.directory
                  WHERE own.node_id = brokers.node_id AND partitions.topic = metadata_partitions.topic
                    AND partitions.partition = metadata_partitions.partition)
GROUP BY node_id, topic, metadata_partitions.partition, replicas
HAVING count(*) >= coalesce(max(size(log_dirs)), 1)
