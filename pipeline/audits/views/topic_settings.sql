-- The topics' own configurations, a row for each change; without a value: removed. The deletion of a topic removes its configuration, also
-- for a later topic with this name; the metadata log has no record of that.
SELECT given.topic, name, value, given.offset
FROM (SELECT get_json_object(record, '$.resource_name') AS topic, get_json_object(record, '$.name') AS name,
             get_json_object(record, '$.value') AS value, offset
      FROM state_metadata WHERE type = 'ConfigRecord' AND get_json_object(record, '$.resource_type') = '2') given
LEFT JOIN (SELECT made.topic, max(gone.offset) AS gone_at
           FROM (SELECT get_json_object(record, '$.name') AS topic, get_json_object(record, '$.topic_id') AS topic_id
                 FROM state_metadata WHERE type = 'TopicRecord') made
           JOIN (SELECT get_json_object(record, '$.topic_id') AS topic_id, offset
                 FROM state_metadata WHERE type = 'RemoveTopicRecord') gone ON gone.topic_id = made.topic_id
           GROUP BY made.topic) deleted ON deleted.topic = given.topic
WHERE gone_at IS NULL OR given.offset > gone_at
