-- title: an assignment of a partition that does not exist
-- severity: error
-- A member of a group owns, or is to own, a partition of a topic that the metadata never had, or a partition that the topic never had. No
-- member reads the partition that was meant instead. Deleted topics count as known; if the beginning of the metadata log is gone, only
-- partitions of existing topics are checked, by the topic's id.
WITH entries AS (
  SELECT type, from_json(record, 'name STRING, topic_id STRING, partition_id INT') AS fields
  FROM state_metadata WHERE type IN ('TopicRecord', 'PartitionRecord')
),
topics AS (SELECT DISTINCT fields.name AS topic, fields.topic_id AS topic_id FROM entries WHERE type = 'TopicRecord'),
places AS (
  SELECT DISTINCT topics.topic, topics.topic_id, fields.partition_id AS partition
  FROM entries JOIN topics ON topics.topic_id = fields.topic_id WHERE type = 'PartitionRecord'
),
whole AS (SELECT coalesce(min(base_offset) = 0, false) AS is_whole FROM batches WHERE topic = '__cluster_metadata'),
assigned AS (
  SELECT state_partition, offset, group_id, name AS member_id, CAST(NULL AS STRING) AS topic, place AS topic_id, number
  FROM group_tasks WHERE group_type <> 'streams'
  UNION ALL
  SELECT partition, offset, group_id, member.member_id, owned.topic, CAST(NULL AS STRING), owned.partition
  FROM (SELECT *, row_number() OVER (PARTITION BY group_id ORDER BY offset DESC) AS newest FROM state_groups) latest
  CROSS JOIN LATERAL explode(members) AS member_rows(member) CROSS JOIN LATERAL explode(member.assigned) AS owned_rows(owned)
  WHERE newest = 1 AND NOT is_tombstone
)
SELECT '__consumer_offsets' AS topic, state_partition AS partition, offset, group_id, member_id,
       coalesce(assigned.topic, assigned.topic_id) AS assigned_topic, number AS assigned_partition
FROM assigned CROSS JOIN whole
WHERE EXISTS (SELECT 1 FROM topics)
  AND NOT EXISTS (SELECT 1 FROM places WHERE (places.topic = assigned.topic OR places.topic_id = assigned.topic_id)
                  AND places.partition = assigned.number)
  AND (is_whole OR EXISTS (SELECT 1 FROM topics WHERE topics.topic_id = assigned.topic_id))
GROUP BY ALL
