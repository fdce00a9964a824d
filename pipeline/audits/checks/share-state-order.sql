-- title: a share partition's record that does not follow from earlier ones
-- severity: error
-- Epochs and start offset of a share partition never decrease, unless it is initialized again (by a reset of its offsets) or was deleted;
-- each snapshot's epoch is one higher than the last, and an update has that of the snapshot that it changes. Otherwise a record was lost,
-- or an old leader or coordinator continued to write.
SELECT '__share_group_state' AS topic, partition, offset, group_id, topic_id, shared_partition, type, what, snapshot_epoch,
       previous_snapshot_epoch, state_epoch, previous_state_epoch, leader_epoch, previous_leader_epoch, start_offset, previous_start_offset
FROM (
  SELECT share_states.*, CASE
    WHEN is_snapshot AND state_epoch < previous_state_epoch THEN 'the state epoch goes back'
    WHEN leader_epoch >= 0 AND leader_epoch < previous_leader_epoch THEN 'the leader epoch goes back'
    WHEN start_offset >= 0 AND start_offset < previous_start_offset THEN 'the start offset goes back'
    WHEN is_snapshot AND snapshot_epoch <= previous_snapshot_epoch THEN 'the snapshot epoch does not grow'
    WHEN is_snapshot AND snapshot_epoch > previous_snapshot_epoch + 1 THEN 'a snapshot is missing'
    WHEN NOT is_snapshot AND snapshot_epoch <> previous_snapshot_epoch THEN 'an update of another snapshot'
    WHEN NOT is_snapshot AND previous_snapshot_epoch IS NULL AND (is_whole OR life > 0 OR last_snapshot IS NULL)
      THEN 'an update without a snapshot' END AS what
  FROM share_states WHERE NOT is_tombstone
)
WHERE what IS NOT NULL
