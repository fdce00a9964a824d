-- title: an epoch does not begin at sequence 0
-- severity: error
-- The first batch of a producer, or of a new epoch of it, begins at sequence 0. If it does not, earlier records are missing. Not checked if
-- the log's beginning is gone, or the cleaner has processed what is between, since they may have been removed with it; nor in a topic that
-- was, or may have been, deleted and recreated: its logs know no producer, so Kafka accepts any first sequence.
SELECT produced.directory, topic, partition, base_offset AS offset, producer_id, producer_epoch, data_epoch AS epoch_before,
       base_sequence, segment, position
FROM produced JOIN partitions USING (directory, topic, partition)
WHERE NOT is_control AND base_sequence > 0
  AND ((producer_epoch > data_epoch AND data_offset >= cleaned_to)
    OR (data_epoch IS NULL AND turn = 0 AND log_start = 0 AND cleaned_to = 0 AND NOT coalesce(is_recreated, true)))
