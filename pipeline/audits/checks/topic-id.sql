-- title: a partition of another topic
-- severity: error
-- `partition.metadata` has the topic's id. The metadata has another id for this name, or other partitions of the topic have another one:
-- the directory belongs to a topic that was deleted, or to another cluster, and so do its records; or the file is gone, and a broker treats
-- the log as stray. Without metadata, the id of most directories counts.
SELECT directory, topic, partition, partitions.topic_id, metadata_topics.topic_id AS metadata_id
FROM partitions JOIN metadata_topics USING (topic)
WHERE partitions.topic_id <> metadata_topics.topic_id
UNION ALL
SELECT partitions.directory, topic, partitions.partition, partitions.topic_id, metadata_topics.topic_id
FROM partitions JOIN metadata_topics USING (topic)
WHERE partitions.topic_id IS NULL AND log_end > 0 AND metadata_topics.topic_id <> 'AAAAAAAAAAAAAAAAAAAAAA'
  AND NOT EXISTS (SELECT 1 FROM unreadable WHERE unreadable.directory = partitions.directory AND unreadable.topic = partitions.topic
                  AND unreadable.partition = partitions.partition AND unreadable.file LIKE '%partition.metadata')
UNION ALL
SELECT partitions.directory, topic, partitions.partition, partitions.topic_id, usual.topic_id
FROM partitions JOIN (
  SELECT topic, max_by(topic_id, struct(times, topic_id)) AS topic_id
  FROM (SELECT topic, topic_id, count(*) AS times FROM partitions WHERE topic_id IS NOT NULL GROUP BY topic, topic_id) GROUP BY topic
) usual USING (topic)
WHERE partitions.topic_id <> usual.topic_id AND NOT EXISTS (SELECT 1 FROM metadata_topics)
