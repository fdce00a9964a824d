-- What members of consumer and streams groups own now, and what they are to own: a row per partition or task. `place` is a topic's id or
-- a subtopology, `role` is active, standby or warm-up; partitions are active.
WITH fields AS (
  SELECT group_id, group_type, type, name, partition AS state_partition, offset, from_json(record, 'assigned_partitions ARRAY<STRUCT<topic_id STRING, partitions ARRAY<INT>>>,
           partitions_pending_revocation ARRAY<STRUCT<topic_id STRING, partitions ARRAY<INT>>>,
           topic_partitions ARRAY<STRUCT<topic_id STRING, partitions ARRAY<INT>>>,
           active_tasks ARRAY<STRUCT<subtopology_id STRING, partitions ARRAY<INT>>>,
           active_tasks_pending_revocation ARRAY<STRUCT<subtopology_id STRING, partitions ARRAY<INT>>>,
           standby_tasks ARRAY<STRUCT<subtopology_id STRING, partitions ARRAY<INT>>>,
           standby_tasks_pending_revocation ARRAY<STRUCT<subtopology_id STRING, partitions ARRAY<INT>>>,
           warmup_tasks ARRAY<STRUCT<subtopology_id STRING, partitions ARRAY<INT>>>,
           warmup_tasks_pending_revocation ARRAY<STRUCT<subtopology_id STRING, partitions ARRAY<INT>>>') AS got
  FROM group_states WHERE type IN ('CURRENT_MEMBER', 'TARGET_MEMBER')
),
pieces AS (
  SELECT group_id, group_type, type, name, state_partition, offset, 'active' AS role, each.topic_id AS place, each.partitions AS numbers
  FROM fields LATERAL VIEW explode(got.assigned_partitions) AS each
  UNION ALL
  SELECT group_id, group_type, type, name, state_partition, offset, 'active' AS role, each.topic_id AS place, each.partitions AS numbers
  FROM fields LATERAL VIEW explode(got.partitions_pending_revocation) AS each
  UNION ALL
  SELECT group_id, group_type, type, name, state_partition, offset, 'active' AS role, each.topic_id AS place, each.partitions AS numbers
  FROM fields LATERAL VIEW explode(got.topic_partitions) AS each
  UNION ALL
  SELECT group_id, group_type, type, name, state_partition, offset, 'active' AS role, each.subtopology_id AS place, each.partitions AS numbers
  FROM fields LATERAL VIEW explode(got.active_tasks) AS each
  UNION ALL
  SELECT group_id, group_type, type, name, state_partition, offset, 'active' AS role, each.subtopology_id AS place, each.partitions AS numbers
  FROM fields LATERAL VIEW explode(got.active_tasks_pending_revocation) AS each
  UNION ALL
  SELECT group_id, group_type, type, name, state_partition, offset, 'standby' AS role, each.subtopology_id AS place, each.partitions AS numbers
  FROM fields LATERAL VIEW explode(got.standby_tasks) AS each
  UNION ALL
  SELECT group_id, group_type, type, name, state_partition, offset, 'standby' AS role, each.subtopology_id AS place, each.partitions AS numbers
  FROM fields LATERAL VIEW explode(got.standby_tasks_pending_revocation) AS each
  UNION ALL
  SELECT group_id, group_type, type, name, state_partition, offset, 'warm-up' AS role, each.subtopology_id AS place, each.partitions AS numbers
  FROM fields LATERAL VIEW explode(got.warmup_tasks) AS each
  UNION ALL
  SELECT group_id, group_type, type, name, state_partition, offset, 'warm-up' AS role, each.subtopology_id AS place, each.partitions AS numbers
  FROM fields LATERAL VIEW explode(got.warmup_tasks_pending_revocation) AS each
)
SELECT group_id, group_type, type, name, state_partition, offset, role, place, number
FROM pieces LATERAL VIEW explode(numbers) AS number
