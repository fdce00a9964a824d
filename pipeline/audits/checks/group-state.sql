-- title: records of a group that do not fit together
-- severity: error
-- The newest records of a consumer, share or streams group: a member has its own metadata and no epoch beyond that of the group, nor
-- have assignments; no partition or task belongs to two members at once (a share group's may); tasks are of the group's topology; and
-- the group is of one type.
WITH groups AS (SELECT group_id, group_type, epoch FROM group_states WHERE type = 'GROUP_METADATA'),
found AS (
  SELECT each.partition, each.offset, each.group_id, each.group_type, each.type, each.name, CASE
    WHEN groups.group_id IS NULL THEN 'a group without its own record'
    WHEN each.assignment_epoch > groups.epoch THEN 'an assignment epoch beyond that of the group'
    WHEN each.type = 'CURRENT_MEMBER' AND each.member_epoch > groups.epoch THEN 'a member epoch beyond that of the group'
    WHEN each.type IN ('CURRENT_MEMBER', 'TARGET_MEMBER') AND members.name IS NULL THEN 'an unknown member' END AS what
  FROM group_states each
  LEFT JOIN groups ON groups.group_id = each.group_id AND groups.group_type = each.group_type
  LEFT JOIN (SELECT group_id, group_type, name FROM group_states WHERE type = 'MEMBER_METADATA') members
    ON members.group_id = each.group_id AND members.group_type = each.group_type AND members.name = each.name
  WHERE each.type NOT IN ('STATE_PARTITIONS', 'REGULAR_EXPRESSION', 'PARTITION_METADATA')
  UNION ALL
  SELECT state_partition, max(offset), group_id, group_type, type, concat(place, '-', number), 'one partition or task of two members'
  FROM group_tasks WHERE group_type <> 'share'
  GROUP BY state_partition, group_id, group_type, type, place, number HAVING count(*) > 1
  UNION ALL
  SELECT tasks.state_partition, tasks.offset, tasks.group_id, tasks.group_type, tasks.type, tasks.name, 'a task of no subtopology'
  FROM group_tasks tasks JOIN group_states topology
    ON topology.group_id = tasks.group_id AND topology.group_type = 'streams' AND topology.type = 'TOPOLOGY'
  WHERE tasks.group_type = 'streams' AND NOT exists(from_json(topology.record, 'subtopologies ARRAY<STRUCT<subtopology_id STRING>>').subtopologies,
    each -> each.subtopology_id = tasks.place)
  UNION ALL
  SELECT partition, max(offset), group_id, min(group_type), 'GROUP_METADATA', '', 'two types of groups'
  FROM group_states WHERE type = 'GROUP_METADATA' GROUP BY partition, group_id HAVING count(*) > 1
)
SELECT DISTINCT '__consumer_offsets' AS topic, partition, offset, group_id, group_type, type, name, what
FROM found WHERE what IS NOT NULL
