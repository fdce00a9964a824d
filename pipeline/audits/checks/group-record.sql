-- title: a record of a consumer, share or streams group that contradicts itself or those before
-- severity: error
-- Epochs are not negative, those of a group and of its assignments only grow until it is deleted, and a member's state is one that
-- there is.
WITH entries AS (
  SELECT partition, offset, group_id, group_type, type, name, is_tombstone,
         try_cast(get_json_object(record, '$.epoch') AS INT) AS epoch,
         try_cast(get_json_object(record, '$.assignment_epoch') AS INT) AS assignment_epoch,
         try_cast(get_json_object(record, '$.member_epoch') AS INT) AS member_epoch,
         try_cast(get_json_object(record, '$.state') AS INT) AS member_state
  FROM state_group_records WHERE NOT coalesce(aborted, false)
),
ordered AS (
  SELECT *, lag(epoch) OVER each AS previous_epoch, lag(assignment_epoch) OVER each AS previous_assignment_epoch
  FROM entries WINDOW each AS (PARTITION BY group_id, group_type, type, coalesce(name, '') ORDER BY offset)
)
SELECT '__consumer_offsets' AS topic, partition, offset, group_id, group_type, type, name, what
FROM (
  SELECT ordered.*, CASE
    WHEN epoch < 0 OR assignment_epoch < 0 OR member_epoch < -2 THEN 'a negative epoch'
    WHEN type = 'GROUP_METADATA' AND epoch < previous_epoch THEN 'the group epoch goes back'
    WHEN type = 'TARGET_METADATA' AND assignment_epoch < previous_assignment_epoch THEN 'the assignment epoch goes back'
    WHEN type = 'CURRENT_MEMBER' AND member_state NOT IN (0, 1, 2, 3, 127) THEN 'an unknown member state' END AS what
  FROM ordered WHERE NOT is_tombstone
)
WHERE what IS NOT NULL
