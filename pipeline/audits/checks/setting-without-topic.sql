-- title: settings of a topic that does not exist
-- severity: error
-- The metadata has a configuration for a topic that was never created, or was deleted before. Controllers reject that; a topic that is
-- later created with this name starts with configurations that it was not given.
WITH entries AS (
  SELECT type, offset, from_json(record, 'topic_id STRING, resource_type INT, resource_name STRING, name STRING, value STRING') AS fields
  FROM state_metadata WHERE type IN ('TopicRecord', 'RemoveTopicRecord', 'ConfigRecord')
),
lives AS (
  SELECT made.fields.name AS name, min(gone.offset) AS until
  FROM entries made LEFT JOIN entries gone ON gone.type = 'RemoveTopicRecord' AND gone.fields.topic_id = made.fields.topic_id
  WHERE made.type = 'TopicRecord' GROUP BY made.fields.name, made.fields.topic_id
)
SELECT '__cluster_metadata' AS topic, 0 AS partition, offset, fields.resource_name, fields.name, fields.value
FROM entries
WHERE type = 'ConfigRecord' AND fields.resource_type = 2 AND fields.value IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM lives WHERE lives.name = fields.resource_name AND coalesce(lives.until > entries.offset, true))
