-- title: a metadata record that contradicts itself or earlier ones
-- severity: error
-- A partition has replicas, each once, its ISR and leader are among them, and its topic exists; a topic's name is unique until it is
-- removed; blocks of producer ids only increase; the partitions of a topic are numbered without a gap; registrations, features,
-- credentials, ACLs, tokens, quotas and metadata transactions are consistent with earlier records; control records are those of a quorum,
-- and name a leader among its voters. A controller or broker that replays the
-- log stops here, or diverges from the others.
WITH entries AS (
  SELECT offset, type, record, from_json(record, 'name STRING, topic_id STRING, partition_id INT, replicas ARRAY<INT>, isr ARRAY<INT>,
           leader INT, leader_epoch INT') AS fields,
         try_cast(get_json_object(record, '$.next_producer_id') AS BIGINT) AS next_producer_id
  FROM state_metadata
  WHERE type IN ('TopicRecord', 'PartitionRecord', 'PartitionChangeRecord', 'RemoveTopicRecord', 'ProducerIdsRecord')
),
known AS (SELECT fields.topic_id AS topic_id, min(offset) AS since FROM entries WHERE type = 'TopicRecord' GROUP BY 1),
gone AS (SELECT fields.topic_id AS topic_id, min(offset) AS until FROM entries WHERE type = 'RemoveTopicRecord' GROUP BY 1)
SELECT '__cluster_metadata' AS topic, 0 AS partition, entries.offset, type, record
FROM entries LEFT JOIN known ON known.topic_id = fields.topic_id LEFT JOIN gone ON gone.topic_id = fields.topic_id
WHERE (type = 'PartitionRecord' AND (size(fields.replicas) = 0 OR size(array_distinct(fields.replicas)) < size(fields.replicas)
         OR size(array_except(fields.isr, fields.replicas)) > 0 OR fields.leader_epoch < 0
         OR (fields.leader >= 0 AND NOT array_contains(fields.replicas, fields.leader))))
  OR (type = 'PartitionChangeRecord' AND size(array_except(fields.isr, fields.replicas)) > 0)
  OR (type IN ('PartitionRecord', 'PartitionChangeRecord', 'RemoveTopicRecord')
      AND (known.topic_id IS NULL OR known.since > entries.offset OR gone.until < entries.offset))
UNION ALL
SELECT '__cluster_metadata', 0, offset, type, record
FROM (SELECT named.*, gone.until, lag(gone.until, 1, offset) OVER (PARTITION BY fields.name ORDER BY offset) AS previous_until,
             lag(fields.topic_id) OVER (PARTITION BY fields.name ORDER BY offset) AS previous_id
      FROM entries named LEFT JOIN gone ON gone.topic_id = fields.topic_id WHERE type = 'TopicRecord')
WHERE previous_id <> fields.topic_id AND coalesce(previous_until > offset, true)
UNION ALL
SELECT '__cluster_metadata', 0, offset, type, record
FROM (SELECT *, max(next_producer_id) OVER (ORDER BY offset ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS highest
      FROM entries WHERE type = 'ProducerIdsRecord')
WHERE next_producer_id < highest
UNION ALL
SELECT '__cluster_metadata', 0, CAST(NULL AS BIGINT), 'PartitionRecord',
       concat(topic, ': ', CAST(count(DISTINCT partition) AS STRING), ' of ', CAST(max(partition) + 1 AS STRING), ' partitions')
FROM metadata_partitions GROUP BY topic HAVING count(DISTINCT partition) <= max(partition)
UNION ALL
SELECT '__cluster_metadata', 0, offset, type, what
FROM metadata_faults WHERE file IS NULL AND what NOT LIKE 'records between%'
UNION ALL
SELECT '__cluster_metadata', 0, base_offset, 'LeaderChangeMessage', 'an epoch that does not begin with its leader'
FROM ordered
WHERE topic = '__cluster_metadata' AND damage IS NULL AND leader_epoch > previous_leader_epoch AND coalesce(control_type, '') <> 'LEADER_CHANGE'
