-- title: a record of a consumer, share or streams group that contradicts itself or earlier ones
-- severity: error
-- Epochs, times and timeouts are not negative; the epochs of a group, its assignments and its topology only increase until it is deleted; a
-- member's partitions, tasks and previous epoch precede its current epoch; and a member's state is one that its type of group has, and
-- that of a member with something to revoke.
WITH entries AS (
  SELECT partition, offset, group_id, group_type, type, name, is_tombstone,
         try_cast(get_json_object(record, '$.epoch') AS INT) AS epoch,
         try_cast(get_json_object(record, '$.assignment_epoch') AS INT) AS assignment_epoch,
         try_cast(get_json_object(record, '$.member_epoch') AS INT) AS member_epoch,
         try_cast(get_json_object(record, '$.previous_member_epoch') AS INT) AS previous_epoch_of_member,
         array_max(flatten(transform(concat(coalesce(given.assigned_partitions, array()), coalesce(given.partitions_pending_revocation, array()),
           coalesce(given.active_tasks, array()), coalesce(given.active_tasks_pending_revocation, array())),
           each -> coalesce(each.assignment_epochs, array())))) AS epoch_of_assignment,
         try_cast(get_json_object(record, '$.state') AS INT) AS member_state,
         coalesce(get_json_object(record, '$.partitions_pending_revocation[0]'), get_json_object(record, '$.active_tasks_pending_revocation[0]'),
           get_json_object(record, '$.standby_tasks_pending_revocation[0]'),
           get_json_object(record, '$.warmup_tasks_pending_revocation[0]')) IS NOT NULL AS revokes,
         least(coalesce(given.rebalance_timeout_ms, -1), coalesce(given.assignment_timestamp_ms, -1), coalesce(given.topology_epoch, -1),
           coalesce(given.validated_topology_epoch, -1), coalesce(given.stored_description_topology_epoch, -1),
           coalesce(given.failed_description_topology_epoch, -1), coalesce(array_min(flatten(transform(concat(
             coalesce(given.assigned_partitions, array()), coalesce(given.partitions_pending_revocation, array()),
             coalesce(given.active_tasks, array()), coalesce(given.active_tasks_pending_revocation, array())),
             each -> coalesce(each.assignment_epochs, array())))), -1)) AS least_number,
         array_min(flatten(transform(coalesce(given.active_tasks, array()), each -> coalesce(each.partitions, array())))) AS least_partition,
         size(filter(concat(coalesce(given.assigned_partitions, array()), coalesce(given.partitions_pending_revocation, array()),
             coalesce(given.active_tasks, array()), coalesce(given.active_tasks_pending_revocation, array())),
           each -> size(each.assignment_epochs) > 0 AND size(each.assignment_epochs) <> size(each.partitions))) > 0 AS has_other_epochs
  FROM (SELECT *, from_json(record, 'rebalance_timeout_ms INT, assignment_timestamp_ms BIGINT, topology_epoch INT, validated_topology_epoch INT,
          stored_description_topology_epoch INT, failed_description_topology_epoch INT,
          assigned_partitions ARRAY<STRUCT<partitions ARRAY<INT>, assignment_epochs ARRAY<INT>>>,
          partitions_pending_revocation ARRAY<STRUCT<partitions ARRAY<INT>, assignment_epochs ARRAY<INT>>>,
          active_tasks ARRAY<STRUCT<partitions ARRAY<INT>, assignment_epochs ARRAY<INT>>>,
          active_tasks_pending_revocation ARRAY<STRUCT<partitions ARRAY<INT>, assignment_epochs ARRAY<INT>>>') AS given
        FROM state_group_records WHERE NOT coalesce(aborted, false))
),
ordered AS (
  SELECT *, lag(epoch) OVER each AS previous_epoch, lag(assignment_epoch) OVER each AS previous_assignment_epoch
  FROM entries WINDOW each AS (PARTITION BY group_id, group_type, type, coalesce(name, '') ORDER BY offset)
)
SELECT '__consumer_offsets' AS topic, partition, offset, group_id, group_type, type, name, what
FROM (
  SELECT ordered.*, CASE
    WHEN epoch < 0 OR assignment_epoch < 0 OR member_epoch < -2 OR previous_epoch_of_member < -2 THEN 'a negative epoch'
    WHEN least_number < -1 OR least_partition < 0 THEN 'a negative number'
    WHEN has_other_epochs THEN 'another number of epochs than of partitions'
    WHEN type = 'GROUP_METADATA' AND epoch < previous_epoch THEN 'the group epoch goes back'
    WHEN type = 'TARGET_METADATA' AND assignment_epoch < previous_assignment_epoch THEN 'the assignment epoch goes back'
    WHEN type = 'CURRENT_MEMBER' AND member_epoch >= 0 AND previous_epoch_of_member > member_epoch THEN 'a previous member epoch beyond the current one'
    WHEN type = 'CURRENT_MEMBER' AND member_epoch >= 0 AND epoch_of_assignment > member_epoch THEN 'a partition or task of a later epoch than its member'
    WHEN type = 'TOPOLOGY' AND epoch < previous_epoch THEN 'the topology epoch goes back'
    WHEN type = 'CURRENT_MEMBER' AND member_state <> 127 AND (member_state < if(group_type = 'streams', 1, 0)
      OR member_state > CASE group_type WHEN 'streams' THEN 3 WHEN 'consumer' THEN 2 ELSE 0 END) THEN 'an unknown member state'
    WHEN type = 'CURRENT_MEMBER' AND revokes AND member_epoch > 0 AND member_state <> if(group_type = 'streams', 2, 1)
      THEN 'something to revoke in another state' END AS what
  FROM ordered WHERE NOT is_tombstone
)
WHERE what IS NOT NULL
