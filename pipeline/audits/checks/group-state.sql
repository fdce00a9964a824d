-- title: records of a group that do not fit together
-- severity: error
-- The newest records of a consumer, share or streams group: a member has its own metadata and no epoch above the group's, nor do
-- assignments, and one that revokes has something to revoke; no partition or active task belongs to two members at once (a share group's
-- may); tasks belong to the group's topology and to a partition of its topics, each in one role and process; the topology has each
-- subtopology and source once and is the one that the group's topics were validated for; and the group has one type, and no classic group
-- has its name.
WITH groups AS (SELECT group_id, group_type, epoch FROM group_states WHERE type = 'GROUP_METADATA'),
topologies AS (
  SELECT partition, offset, group_id, group_type, type, name, epoch, from_json(record, 'subtopologies ARRAY<STRUCT<subtopology_id STRING,
           source_topics ARRAY<STRING>, source_topic_regex ARRAY<STRING>, repartition_source_topics ARRAY<STRUCT<name STRING>>,
           copartition_groups ARRAY<STRUCT<source_topics ARRAY<INT>, source_topic_regex ARRAY<INT>, repartition_source_topics ARRAY<INT>>>>>').subtopologies AS subtopologies
  FROM group_states WHERE group_type = 'streams' AND type = 'TOPOLOGY'
),
parts AS (
  SELECT group_id, each.subtopology_id, topic, size(each.source_topics) AS sources,
         size(each.source_topic_regex) > 0 OR size(each.repartition_source_topics) > 0 AS is_derived
  FROM topologies CROSS JOIN LATERAL explode(subtopologies) AS each_rows(each) CROSS JOIN LATERAL explode(each.source_topics) AS topic_rows(topic)
),
processes AS (
  SELECT group_id, name, get_json_object(record, '$.process_id') AS process_id
  FROM group_states WHERE group_type = 'streams' AND type = 'MEMBER_METADATA'
),
found AS (
  SELECT each.partition, each.offset, each.group_id, each.group_type, each.type, each.name, CASE
    WHEN groups.group_id IS NULL THEN 'a group without its own record'
    WHEN each.assignment_epoch > groups.epoch THEN 'an assignment epoch beyond that of the group'
    WHEN each.type = 'CURRENT_MEMBER' AND each.member_epoch > groups.epoch THEN 'a member epoch beyond that of the group'
    WHEN each.type IN ('CURRENT_MEMBER', 'TARGET_MEMBER') AND members.name IS NULL THEN 'an unknown member'
    -- a static member that leaves keeps its state, and the next one of its instance takes it over
    WHEN each.type = 'CURRENT_MEMBER' AND members.instance_id IS NULL AND each.member_epoch > 0
      AND try_cast(get_json_object(each.record, '$.state') AS INT) = CASE each.group_type WHEN 'streams' THEN 2 WHEN 'consumer' THEN 1 END
      AND coalesce(get_json_object(each.record, '$.partitions_pending_revocation[0]'), get_json_object(each.record, '$.active_tasks_pending_revocation[0]'),
        get_json_object(each.record, '$.standby_tasks_pending_revocation[0]'),
        get_json_object(each.record, '$.warmup_tasks_pending_revocation[0]')) IS NULL THEN 'a member that revokes nothing' END AS what
  FROM group_states each
  LEFT JOIN groups ON groups.group_id = each.group_id AND groups.group_type = each.group_type
  LEFT JOIN (SELECT group_id, group_type, name, get_json_object(record, '$.instance_id') AS instance_id
             FROM group_states WHERE type = 'MEMBER_METADATA') members
    ON members.group_id = each.group_id AND members.group_type = each.group_type AND members.name = each.name
  WHERE each.type NOT IN ('STATE_PARTITIONS', 'REGULAR_EXPRESSION', 'PARTITION_METADATA')
  UNION ALL
  SELECT state_partition, max(offset), group_id, group_type, type, concat(place, '-', number), 'one partition or task of two members'
  FROM group_tasks WHERE group_type <> 'share' AND role = 'active'
  GROUP BY state_partition, group_id, group_type, type, place, number HAVING count(*) > 1
  UNION ALL
  SELECT tasks.state_partition, tasks.offset, tasks.group_id, tasks.group_type, tasks.type, tasks.name, 'a task of no subtopology'
  FROM group_tasks tasks JOIN group_states topology
    ON topology.group_id = tasks.group_id AND topology.group_type = 'streams' AND topology.type = 'TOPOLOGY'
  WHERE tasks.group_type = 'streams' AND size(filter(from_json(topology.record, 'subtopologies ARRAY<STRUCT<subtopology_id STRING>>').subtopologies,
    each -> each.subtopology_id = tasks.place)) = 0
  UNION ALL
  SELECT state_partition, max(offset), group_id, group_type, type, name, 'one task in two roles of a member'
  FROM group_tasks WHERE group_type = 'streams'
  GROUP BY state_partition, group_id, group_type, type, name, place, number HAVING count(DISTINCT role) > 1
  UNION ALL
  SELECT tasks.state_partition, tasks.offset, tasks.group_id, tasks.group_type, tasks.type, tasks.name, 'a task beyond the partitions of its topics'
  FROM group_tasks tasks
  JOIN (SELECT parts.group_id, parts.subtopology_id, max(known.partitions) AS partitions
        FROM parts JOIN (SELECT topic, count(*) AS partitions FROM metadata_partitions GROUP BY topic) known ON known.topic = parts.topic
        GROUP BY parts.group_id, parts.subtopology_id, parts.sources, parts.is_derived
        HAVING count(*) = parts.sources AND NOT parts.is_derived) sizes
    ON sizes.group_id = tasks.group_id AND sizes.subtopology_id = tasks.place
  WHERE tasks.group_type = 'streams' AND tasks.number >= sizes.partitions
  UNION ALL
  SELECT partition, offset, group_id, group_type, type, name, 'a topology that contradicts itself'
  FROM topologies
  WHERE epoch < 0 OR size(array_distinct(transform(subtopologies, each -> each.subtopology_id))) < size(subtopologies)
    OR size(filter(subtopologies, each -> size(each.source_topics) = 0 AND size(each.source_topic_regex) = 0
      AND size(each.repartition_source_topics) = 0)) > 0
    OR size(filter(subtopologies, each -> size(filter(each.copartition_groups, one ->
      size(filter(one.source_topics, number -> number < 0 OR number >= size(each.source_topics))) > 0
      OR size(filter(one.source_topic_regex, number -> number < 0 OR number >= size(each.source_topic_regex))) > 0
      OR size(filter(one.repartition_source_topics, number -> number < 0 OR number >= size(each.repartition_source_topics))) > 0)) > 0)) > 0
    OR size(array_distinct(flatten(transform(subtopologies, each -> each.source_topics)))) < size(flatten(transform(subtopologies, each -> each.source_topics)))
  UNION ALL
  SELECT each.partition, each.offset, each.group_id, each.group_type, each.type, each.name, 'validated for a topology that is still to come'
  FROM group_states each JOIN topologies ON topologies.group_id = each.group_id
  WHERE each.group_type = 'streams' AND each.type = 'GROUP_METADATA'
    AND try_cast(get_json_object(each.record, '$.validated_topology_epoch') AS INT) > topologies.epoch
  UNION ALL
  SELECT state_partition, max(offset), group_id, group_type, type, name, 'one partition of a member twice'
  FROM group_tasks WHERE group_type = 'share'
  GROUP BY state_partition, group_id, group_type, type, name, place, number HAVING count(*) > 1
  UNION ALL
  SELECT standby.state_partition, standby.offset, standby.group_id, standby.group_type, standby.type, standby.name, 'a standby task in the process of the active one'
  FROM group_tasks standby
  JOIN group_tasks active ON active.group_id = standby.group_id AND active.type = standby.type AND active.role = 'active'
    AND active.place = standby.place AND active.number = standby.number
  JOIN processes one ON one.group_id = standby.group_id AND one.name = standby.name
  JOIN processes other ON other.group_id = active.group_id AND other.name = active.name
  WHERE standby.group_type = 'streams' AND standby.role = 'standby' AND standby.type = 'TARGET_MEMBER' AND standby.name <> active.name
    AND one.process_id = other.process_id AND one.process_id <> ''
  UNION ALL
  SELECT consumers.partition, greatest(consumers.offset, classic.offset), consumers.group_id, consumers.group_type, consumers.type, '', 'a classic group of the same name'
  FROM group_states consumers
  JOIN (SELECT partition, group_id, max(offset) AS offset, max_by(is_tombstone, offset) AS is_gone FROM state_groups GROUP BY partition, group_id) classic
    ON classic.group_id = consumers.group_id AND classic.partition = consumers.partition AND NOT classic.is_gone
  WHERE consumers.type = 'GROUP_METADATA'
  UNION ALL
  SELECT partition, max(offset), group_id, min(group_type), 'GROUP_METADATA', '', 'two types of groups'
  FROM group_states WHERE type = 'GROUP_METADATA' GROUP BY partition, group_id HAVING count(*) > 1
)
SELECT DISTINCT '__consumer_offsets' AS topic, partition, offset, group_id, group_type, type, name, what
FROM found WHERE what IS NOT NULL
