-- The existing topics, from the metadata log or a snapshot of it.
SELECT topic, max_by(topic_id, offset) AS topic_id
FROM (SELECT get_json_object(record, '$.name') AS topic, get_json_object(record, '$.topic_id') AS topic_id, offset
      FROM state_metadata WHERE type = 'TopicRecord')
WHERE topic_id NOT IN (SELECT coalesce(get_json_object(record, '$.topic_id'), '') FROM state_metadata WHERE type = 'RemoveTopicRecord')
GROUP BY topic
