-- title: a group's record that contradicts itself
-- severity: error
-- A classic group with members has a leader among them, a type and a protocol, and each member and instance id once, with a session
-- timeout; one without members has neither leader nor protocol. Its generation only increases until the group is deleted. Members of type
-- `consumer` have readable assignments, and each partition is assigned to one of them (assignments of assignors with their own user data
-- are not compared).
WITH entries AS (
  SELECT *, lag(generation) OVER (PARTITION BY group_id ORDER BY offset) AS previous_generation,
         lag(is_tombstone) OVER (PARTITION BY group_id ORDER BY offset) AS after_tombstone
  FROM state_groups
)
SELECT '__consumer_offsets' AS topic, partition, offset, group_id, generation, previous_generation, leader, protocol, size(members) AS members
FROM entries
WHERE NOT is_tombstone
  AND (generation < 0 OR current_state_timestamp_ms < -1 OR (generation < previous_generation AND NOT after_tombstone)
    OR (coalesce(size(members), 0) <= 0 AND (leader IS NOT NULL OR protocol IS NOT NULL))
    OR (size(members) > 0 AND (protocol IS NULL OR coalesce(protocol_type, '') = '' OR leader IS NULL
      OR size(filter(members, each -> each.member_id = leader)) = 0
      OR size(array_distinct(transform(members, each -> each.member_id))) < size(members)
      OR size(array_distinct(transform(filter(members, each -> each.group_instance_id IS NOT NULL), each -> each.group_instance_id)))
         < size(filter(members, each -> each.group_instance_id IS NOT NULL))
      OR (protocol_type = 'consumer' AND (size(filter(members, each -> each.assigned IS NULL)) > 0
        OR (size(filter(members, each -> each.has_user_data)) = 0
          AND size(array_distinct(flatten(transform(members, each -> each.assigned))))
              < size(flatten(transform(members, each -> each.assigned))))))
      OR size(filter(members, each -> each.session_timeout_ms <= 0 OR each.rebalance_timeout_ms < -1)) > 0)))
