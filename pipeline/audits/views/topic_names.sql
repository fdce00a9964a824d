-- The name of each topic id, as the directories know it; of others, as the journal's Metadata answers do.
SELECT topic_id, coalesce(max(if(is_kept, topic, NULL)), max(topic)) AS topic FROM (
  SELECT topic_id, topic, true AS is_kept FROM partitions WHERE topic_id IS NOT NULL
  UNION ALL
  SELECT each.topic_id, each.name, false
  FROM (SELECT from_json(response, 'topics ARRAY<STRUCT<name STRING, topic_id STRING>>') AS got FROM calls
        WHERE api IN ('Metadata', 'CreateTopics') AND response IS NOT NULL)
  LATERAL VIEW explode(got.topics) AS each
)
WHERE topic_id <> 'AAAAAAAAAAAAAAAAAAAAAA' AND topic <> ''
GROUP BY topic_id
