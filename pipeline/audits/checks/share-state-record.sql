-- title: a share partition's record that contradicts itself
-- severity: error
-- The batches in a record of `__share_group_state` follow each other without overlaps, none below the start offset; each has a state that
-- is stored (available, acknowledged, archiving, archived) and a delivery count; epochs, offsets and times are not negative. A leader that
-- loads such a state redelivers records, or never delivers them.
SELECT '__share_group_state' AS topic, partition, offset, group_id, topic_id, shared_partition, type, what
FROM (
  SELECT share_states.*, CASE
    WHEN snapshot_epoch < 0 OR state_epoch < 0 OR leader_epoch < -1 THEN 'a negative epoch'
    WHEN start_offset < -1 OR delivery_complete_count < -1 THEN 'a negative offset or count'
    WHEN create_timestamp_ms < 0 OR write_timestamp_ms < create_timestamp_ms THEN 'written before it was created'
    WHEN size(filter(batches, each -> each.first_offset < 0 OR each.last_offset < each.first_offset)) > 0 THEN 'a batch that ends before it begins'
    WHEN size(filter(batches, each -> each.delivery_state NOT IN (0, 2, 3, 4)
      OR each.delivery_count < 0)) > 0 THEN 'an unknown delivery state or count'
    WHEN size(filter(batches, each -> each.delivery_state = 2 AND each.delivery_count = 0)) > 0 THEN 'acknowledged without a delivery'
    WHEN size(filter(batches, each -> each.delivery_state IN (3, 4) AND each.delivery_count = 0)) > 0 THEN 'archived without a delivery'
    WHEN start_offset >= 0 AND size(filter(batches, each -> each.first_offset < start_offset)) > 0 THEN 'a batch below the start offset'
    WHEN size(filter(sequence(2, greatest(2, size(batches))), each -> get(batches, each - 1).first_offset <= get(batches, each - 2).last_offset)) > 0
      THEN 'overlapping batches' END AS what
  FROM share_states WHERE NOT is_tombstone
)
WHERE what IS NOT NULL
