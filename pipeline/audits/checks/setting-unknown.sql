-- title: a setting that no release has
-- severity: warning
-- The metadata has a setting of a topic, of client metrics or of a group by a name that no release of Kafka knows up to the cluster's
-- metadata.version. Controllers refuse such a name; brokers that load it use their default for what was meant.
WITH entries AS (
  SELECT offset, from_json(record, 'resource_type INT, resource_name STRING, name STRING, value STRING') AS fields
  FROM state_metadata WHERE type = 'ConfigRecord'
)
SELECT '__cluster_metadata' AS topic, 0 AS partition, entries.offset, fields.resource_type, fields.resource_name, fields.name AS setting,
       fields.value
FROM entries LEFT JOIN setting_rules ON setting_rules.resource_type = fields.resource_type AND setting_rules.name = fields.name
WHERE setting_rules.name IS NULL AND fields.resource_type IN (2, 16, 32) AND fields.value IS NOT NULL
  AND (SELECT max(try_cast(get_json_object(record, '$.feature_level') AS INT)) FROM state_metadata
       WHERE type = 'FeatureLevelRecord' AND get_json_object(record, '$.name') = 'metadata.version') <= 33
