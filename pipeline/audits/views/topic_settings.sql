-- The own settings of topics, each as often as it was set; without a value: removed. What was set for a topic that was deleted is gone
-- with it, also for one that is created under its name: no record of the metadata log repeats that.
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
