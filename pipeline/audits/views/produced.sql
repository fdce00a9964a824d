-- The batches with a producer id, including markers, in order, with the previous batches of the same producer. `turn` counts the markers
-- before a batch: the batches of one transaction and its marker have the same turn.
SELECT directory, topic, partition, producer_id, producer_epoch, base_sequence, last_sequence, base_offset, last_offset,
       record_count, max_timestamp_ms, is_transactional, is_control, control_type, coordinator_epoch, segment, position,
       turn, highest_epoch, data_epoch, data_sequence, data_offset, previous_coordinator_epoch
FROM history
WHERE damage IS NULL AND producer_id >= 0
