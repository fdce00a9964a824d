-- The current and target assignments of members of consumer and streams groups: a row per partition or task. `place` is a topic id or a
-- subtopology, `role` is active, standby or warm-up; partitions are active.
WITH lists AS (
  SELECT * FROM VALUES ('assigned_partitions', 'active'), ('partitions_pending_revocation', 'active'), ('topic_partitions', 'active'),
    ('active_tasks', 'active'), ('active_tasks_pending_revocation', 'active'), ('standby_tasks', 'standby'),
    ('standby_tasks_pending_revocation', 'standby'), ('warmup_tasks', 'warm-up'), ('warmup_tasks_pending_revocation', 'warm-up') AS lists(field, role)
),
pieces AS (
  SELECT group_id, group_type, type, name, partition AS state_partition, offset, role, from_json(
           concat('{"list":', get_json_object(record, concat('$.', field)), '}'),
           'list ARRAY<STRUCT<topic_id STRING, subtopology_id STRING, partitions ARRAY<INT>>>').list AS list
  FROM group_states CROSS JOIN lists WHERE type IN ('CURRENT_MEMBER', 'TARGET_MEMBER')
),
places AS (
  SELECT group_id, group_type, type, name, state_partition, offset, role, coalesce(each.topic_id, each.subtopology_id) AS place, each.partitions AS numbers
  FROM pieces CROSS JOIN LATERAL explode(list) AS each_rows(each)
)
SELECT group_id, group_type, type, name, state_partition, offset, role, place, number
FROM places CROSS JOIN LATERAL explode(numbers) AS number_rows(number)
