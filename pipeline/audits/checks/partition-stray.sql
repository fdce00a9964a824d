-- title: a partition that the metadata does not have here
-- severity: warning
-- The broker stopped cleanly, and has a directory of a topic or partition that the metadata does not have, or of which it has no replica.
-- When it starts, it renames the directory to `-stray`: the records are not served. Checked if all directories belong to one broker.
SELECT partitions.directory, partitions.topic, partitions.partition, node_id, CASE
  WHEN metadata_partitions.topic IS NOT NULL THEN 'no replica of this broker'
  WHEN EXISTS (SELECT 1 FROM metadata_topics WHERE metadata_topics.topic = partitions.topic) THEN 'an unknown partition'
  ELSE 'an unknown topic' END AS what
FROM partitions JOIN brokers USING (directory)
LEFT JOIN metadata_partitions ON metadata_partitions.topic = partitions.topic AND metadata_partitions.partition = partitions.partition
WHERE is_clean AND partitions.topic <> '__cluster_metadata' AND EXISTS (SELECT 1 FROM metadata_topics)
  AND (SELECT count(DISTINCT node_id) FROM brokers) = 1
  AND (metadata_partitions.topic IS NULL OR NOT array_contains(replicas, try_cast(node_id AS INT)))
