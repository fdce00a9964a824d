-- The newest record of each type for each consumer, share and streams group (KIP-848, KIP-932, KIP-1071), without deleted ones. `name` is a
-- member id, empty for the group's own records.
SELECT partition, offset, group_id, group_type, type, coalesce(name, '') AS name, record,
       try_cast(get_json_object(record, '$.epoch') AS INT) AS epoch,
       try_cast(get_json_object(record, '$.assignment_epoch') AS INT) AS assignment_epoch,
       try_cast(get_json_object(record, '$.member_epoch') AS INT) AS member_epoch
FROM (
  SELECT *, row_number() OVER (PARTITION BY group_id, group_type, type, coalesce(name, '') ORDER BY offset DESC) AS newest
  FROM state_group_records WHERE NOT coalesce(aborted, false)
)
WHERE newest = 1 AND NOT is_tombstone
