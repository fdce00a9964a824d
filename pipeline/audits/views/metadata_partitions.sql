-- The existing partitions, with their replicas.
SELECT topic, topic_id, fields.partition_id AS partition, max_by(fields.replicas, offset) AS replicas
FROM (SELECT offset, from_json(record, 'topic_id STRING, partition_id INT, replicas ARRAY<INT>') AS fields
      FROM state_metadata WHERE type IN ('PartitionRecord', 'PartitionChangeRecord'))
JOIN metadata_topics ON metadata_topics.topic_id = fields.topic_id
WHERE fields.replicas IS NOT NULL
GROUP BY ALL
