-- title: a group's record that contradicts itself
-- severity: error
-- A classic group with members has a leader among them and a protocol, each member once and with a session; its generation only
-- grows until the group is gone.
WITH entries AS (
  SELECT *, lag(generation) OVER (PARTITION BY group_id ORDER BY offset) AS previous_generation,
         lag(is_tombstone) OVER (PARTITION BY group_id ORDER BY offset) AS after_tombstone
  FROM state_groups
)
SELECT '__consumer_offsets' AS topic, partition, offset, group_id, generation, previous_generation, leader, protocol, size(members) AS members
FROM entries
WHERE NOT is_tombstone
  AND (generation < 0 OR (generation < previous_generation AND NOT after_tombstone)
    OR (size(members) > 0 AND (protocol IS NULL OR leader IS NULL
      OR NOT exists(members, each -> each.member_id = leader)
      OR size(array_distinct(transform(members, each -> each.member_id))) < size(members)
      OR exists(members, each -> each.session_timeout_ms <= 0))))
