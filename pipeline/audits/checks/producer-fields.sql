-- title: producer fields that contradict each other
-- severity: error
-- Producer id, epoch and sequence occur together or not at all; a marker has no sequence, and a transaction has a producer. No record has
-- epoch 32767: before that a producer gets another id. Without a producer, a sequence of 0 counts as none: coordinators and
-- controllers write it, and so do clients that are not idempotent (Sarama; KafkaJS with epoch 0, which no client may write to an internal topic).
-- The only producers of an internal topic are those that commit offsets in a transaction.
SELECT directory, topic, partition, base_offset AS offset, producer_id, producer_epoch, base_sequence, is_transactional,
       is_control, segment, position
FROM batches
WHERE damage IS NULL AND magic = 2 AND CASE
  WHEN producer_id < -1 THEN true
  WHEN producer_id = -1 THEN base_sequence NOT IN (-1, 0) OR is_transactional OR NOT (producer_epoch = -1
    OR (producer_epoch = 0 AND base_sequence = 0 AND topic NOT IN ('__consumer_offsets', '__transaction_state', '__share_group_state', '__cluster_metadata')))
  WHEN topic IN ('__transaction_state', '__share_group_state', '__cluster_metadata') OR (topic = '__consumer_offsets' AND NOT is_transactional) THEN true
  WHEN is_control THEN producer_epoch < 0 OR base_sequence <> -1
  ELSE producer_epoch < 0 OR producer_epoch = 32767 OR base_sequence < 0 END
