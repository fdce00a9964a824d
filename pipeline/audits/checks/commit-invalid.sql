-- title: an invalid committed offset
-- severity: error
-- The offset is negative, or belongs to a topic or partition that the metadata does not have, or to another topic with this name, or its
-- epoch or timestamp is invalid. If a broker was killed, the offsets of a topic that was deleted just before may be left.
SELECT latest.topic, latest.partition, committed_offset AS offset, group_id, CASE
  WHEN committed_offset < 0 THEN 'a negative offset' WHEN committed_leader_epoch < -1 THEN 'a negative leader epoch'
  WHEN commit_timestamp_ms < -1 THEN 'a negative time'
  WHEN expire_timestamp_ms BETWEEN 0 AND commit_timestamp_ms - 1 THEN 'expired before it was committed' WHEN metadata_topics.topic IS NULL THEN 'an unknown topic'
  WHEN metadata_partitions.topic IS NULL THEN 'an unknown partition' WHEN committed_leader_epoch > known_epoch THEN 'a leader epoch beyond the latest' ELSE 'another topic id' END AS what
FROM (SELECT committed.*, topic IN (SELECT get_json_object(record, '$.name') FROM state_metadata WHERE type = 'TopicRecord')
               AND NOT coalesce((SELECT bool_and(is_clean) FROM brokers), false) AS is_left FROM committed) latest
LEFT JOIN metadata_topics ON metadata_topics.topic = latest.topic
LEFT JOIN metadata_partitions ON metadata_partitions.topic = latest.topic AND metadata_partitions.partition = latest.partition
LEFT JOIN leader_epochs ON leader_epochs.topic_id = metadata_topics.topic_id AND leader_epochs.partition = latest.partition
WHERE committed_offset < 0 OR committed_leader_epoch > known_epoch OR committed_leader_epoch < -1 OR commit_timestamp_ms < -1
  OR expire_timestamp_ms BETWEEN 0 AND commit_timestamp_ms - 1
  OR (EXISTS (SELECT 1 FROM metadata_topics) AND ((metadata_topics.topic IS NULL AND NOT is_left) OR (metadata_topics.topic IS NOT NULL AND metadata_partitions.topic IS NULL)
    OR (latest.topic_id <> metadata_topics.topic_id AND latest.topic_id <> 'AAAAAAAAAAAAAAAAAAAAAA')))
