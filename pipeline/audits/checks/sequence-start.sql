-- title: an epoch does not begin at sequence 0
-- severity: error
-- The first batch of a producer, or of a new epoch of it, has to begin at sequence 0. Where it does not, earlier records are
-- missing. Not looked at where the log's beginning is gone, or the cleaner has been between, since they may have gone with it; nor in a
-- topic that was deleted and created again, or may have been: its logs know no producer, so Kafka accepts any first sequence.
SELECT produced.directory, topic, partition, base_offset AS offset, producer_id, producer_epoch, data_epoch AS epoch_before,
       base_sequence, segment, position
FROM produced JOIN partitions USING (directory, topic, partition)
WHERE NOT is_control AND base_sequence > 0
  AND ((producer_epoch > data_epoch AND data_offset >= cleaned_to)
    OR (data_epoch IS NULL AND turn = 0 AND log_start = 0 AND cleaned_to = 0 AND NOT coalesce(is_recreated, true)))
