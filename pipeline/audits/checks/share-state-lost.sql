-- title: a share partition without its state, or a state without its group
-- severity: error
-- According to the group's record in `__consumer_offsets` a share partition is initialized, but `__share_group_state` has no state of it:
-- its leader cannot load it. Or there is a state that the group's records do not include. Checked for existing topics if all partitions of
-- both internal topics are in the directory.
WITH named AS (
  SELECT group_id, partition, offset, from_json(record, 'initializing ARRAY<STRUCT<topic_id STRING, partitions ARRAY<INT>>>,
           initialized ARRAY<STRUCT<topic_id STRING, partitions ARRAY<INT>>>, deleting ARRAY<STRUCT<topic_id STRING>>') AS fields
  FROM group_states WHERE type = 'STATE_PARTITIONS'
),
wanted AS (
  SELECT group_id, partition, offset, each.topic_id AS topic_id, number
  FROM named CROSS JOIN LATERAL explode(fields.initialized) AS each_rows(each) CROSS JOIN LATERAL explode(each.partitions) AS number_rows(number)
),
there AS (SELECT * FROM share_states WHERE is_latest AND NOT is_tombstone),
complete AS (
  SELECT count(*) AS topics FROM whole_topics WHERE whole_topics.topic IN ('__share_group_state', '__consumer_offsets')
)
SELECT metadata_topics.topic, number AS partition, CAST(NULL AS BIGINT) AS offset, wanted.group_id, 'no state' AS what
FROM wanted JOIN metadata_topics ON metadata_topics.topic_id = wanted.topic_id JOIN complete ON complete.topics = 2
LEFT JOIN there ON there.group_id = wanted.group_id AND there.topic_id = wanted.topic_id AND there.shared_partition = number
WHERE there.group_id IS NULL
UNION ALL
SELECT metadata_topics.topic, shared_partition, CAST(NULL AS BIGINT), there.group_id, 'no group'
FROM there JOIN metadata_topics ON metadata_topics.topic_id = there.topic_id JOIN complete ON complete.topics = 2
LEFT JOIN named ON named.group_id = there.group_id
WHERE NOT coalesce(
  size(filter(fields.initialized, each -> each.topic_id = there.topic_id AND array_contains(each.partitions, there.shared_partition))) > 0
  OR size(filter(fields.initializing, each -> each.topic_id = there.topic_id AND array_contains(each.partitions, there.shared_partition))) > 0
  OR size(filter(fields.deleting, each -> each.topic_id = there.topic_id)) > 0, false)
