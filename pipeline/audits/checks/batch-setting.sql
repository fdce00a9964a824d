-- title: a batch that its topic's settings do not allow
-- severity: warning
-- The topic has had this setting since it was created, and it was never changed: a batch is larger than max.message.bytes, or has another
-- codec than compression.type, or another kind of times than message.timestamp.type, or a segment of several batches is larger than segment.bytes, or a record was older when the topic was created
-- than message.timestamp.before.max.ms ever allows, by a minute at least. No broker appends that: the log, or the metadata, is of another topic.
-- (A topic of a cluster that was migrated from ZooKeeper is older than its metadata.) Sizes of compacted topics are not checked, since the cleaner compresses batches again.
WITH entries AS (
  SELECT type, offset, timestamp_ms, from_json(record, 'name STRING, topic_id STRING') AS fields
  FROM state_metadata WHERE type IN ('TopicRecord', 'PartitionRecord')
),
created AS (
  SELECT named.fields.name AS topic, min(entries.offset) AS first_partition_offset, min(named.timestamp_ms) AS created_ms
  FROM entries named JOIN entries ON entries.type = 'PartitionRecord' AND entries.fields.topic_id = named.fields.topic_id
  WHERE named.type = 'TopicRecord' GROUP BY named.fields.name HAVING count(DISTINCT named.fields.topic_id) = 1
),
kept AS (
  SELECT topic_settings.topic AS kept_topic, name, max(value) AS value
  FROM topic_settings JOIN created ON created.topic = topic_settings.topic
  WHERE name IN ('max.message.bytes', 'compression.type', 'segment.bytes', 'message.timestamp.before.max.ms', 'message.timestamp.type')
  GROUP BY topic_settings.topic, name HAVING count(*) = 1 AND max(offset) < max(first_partition_offset)
),
segments AS (
  SELECT directory, topic, partition, segment_base, max(segment) AS segment, sum(size) AS bytes, count(*) AS count, max(damage) AS damage
  FROM batches GROUP BY directory, topic, partition, segment_base
)
SELECT directory, topic, partition, base_offset AS offset, name AS setting, value, codec AS actual, segment
FROM batches JOIN kept ON kept_topic = topic AND name = 'compression.type'
WHERE damage IS NULL AND NOT is_control AND value <> 'producer' AND codec <> CASE value WHEN 'uncompressed' THEN 'none' ELSE value END
UNION ALL
SELECT directory, topic, partition, base_offset, name, value, if(timestampType = 1, 'LogAppendTime', 'CreateTime'), segment
FROM batches JOIN kept ON kept_topic = topic AND name = 'message.timestamp.type'
WHERE damage IS NULL AND NOT is_control AND magic > 0 AND value <> if(timestampType = 1, 'LogAppendTime', 'CreateTime')
UNION ALL
SELECT directory, topic, partition, base_offset, name, value, CAST(size AS STRING), segment
FROM batches JOIN partitions USING (directory, topic, partition) JOIN kept ON kept_topic = topic AND name = 'max.message.bytes'
WHERE damage IS NULL AND NOT is_control AND NOT is_compacted AND size > try_cast(value AS BIGINT)
UNION ALL
SELECT directory, topic, partition, segment_base, name, value, CAST(bytes AS STRING), segment
FROM segments JOIN partitions USING (directory, topic, partition) JOIN kept ON kept_topic = topic AND name = 'segment.bytes'
WHERE damage IS NULL AND NOT is_compacted AND count > 1 AND bytes > try_cast(value AS BIGINT)
UNION ALL
SELECT directory, batches.topic, partition, base_offset, name, value, CAST(base_timestamp_ms AS STRING), segment
FROM batches JOIN kept ON kept_topic = batches.topic AND name = 'message.timestamp.before.max.ms' JOIN created ON created.topic = batches.topic
WHERE damage IS NULL AND NOT is_control AND magic = 2 AND timestampType = 0 AND base_timestamp_ms >= 0
  AND created_ms - base_timestamp_ms - 60000 > try_cast(value AS BIGINT)
  AND (SELECT min(base_offset) FROM batches WHERE topic = '__cluster_metadata') = 0
