-- The name of each topic id, from the directories, or else from the journal's Metadata responses.
SELECT topic_id, coalesce(max(if(is_kept, topic, NULL)), max(topic)) AS topic FROM (
  SELECT topic_id, topic, true AS is_kept FROM partitions WHERE topic_id IS NOT NULL
  UNION ALL
  SELECT each.topic_id, each.name, false
  FROM (SELECT from_json(response, 'topics ARRAY<STRUCT<name STRING, topic_id STRING>>') AS got FROM calls
        WHERE api IN ('Metadata', 'CreateTopics') AND response IS NOT NULL)
  CROSS JOIN LATERAL explode(got.topics) AS each_rows(each)
)
WHERE topic_id <> 'AAAAAAAAAAAAAAAAAAAAAA' AND topic <> ''
GROUP BY topic_id
