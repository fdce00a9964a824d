-- When a topic was deleted for the last time.
SELECT name AS topic, max(struct(run, id)) AS deleted FROM (
  SELECT run, id, each.name AS name
  FROM (SELECT run, id, from_json(response, 'responses ARRAY<STRUCT<name STRING, error_code STRING>>') AS got FROM calls
        WHERE api = 'DeleteTopics' AND response IS NOT NULL)
  CROSS JOIN LATERAL explode(got.responses) AS each_rows(each) WHERE each.error_code = 'NONE'
)
GROUP BY name
