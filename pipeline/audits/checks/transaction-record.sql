-- title: a transaction's record that contradicts itself
-- severity: error
-- A transactional id has a producer, an epoch that only increases, and a timeout; an ongoing transaction has partitions, a completed one
-- has none, and it began before its last change. A producer id belongs to one transactional id. The partitions belong to a topic that
-- exists or existed. The next producer id is that of an ended transaction whose epochs are exhausted (KIP-890), the previous one that of
-- an earlier record.
WITH entries AS (
  SELECT state_transactions.*, cleaned_to, lag(transaction_producer_id) OVER each AS previous_id,
         lag(transaction_producer_epoch) OVER each AS previous_epoch, lag(previous_producer_id) OVER each AS previous_of_previous,
         lag(offset) OVER each AS previous_offset,
         min_by(transactional_id, offset) OVER (PARTITION BY transaction_producer_id) AS owner
  FROM state_transactions
  LEFT JOIN (SELECT partition AS cleaned_partition, max(cleaned_to) AS cleaned_to FROM partitions WHERE topic = '__transaction_state' GROUP BY partition)
    ON cleaned_partition = state_transactions.partition
  WHERE NOT is_tombstone
  WINDOW each AS (PARTITION BY transactional_id ORDER BY offset)
)
SELECT '__transaction_state' AS topic, partition, offset, transactional_id, state, transaction_producer_id AS producer_id,
       transaction_producer_epoch AS producer_epoch, previous_epoch, timeout_ms, start_ms, last_update_ms, owner
FROM entries
WHERE transaction_producer_id < 0 OR transaction_producer_epoch < 0 OR timeout_ms <= 0
  OR start_ms < -1 OR previous_producer_id < -1 OR next_producer_id < -1 OR client_transaction_version < 0
  OR (transaction_producer_id = previous_id AND transaction_producer_epoch < previous_epoch)
  OR (state = 'Ongoing' AND (coalesce(size(partitions), 0) <= 0 OR start_ms > last_update_ms OR start_ms < 0))
  OR (state IN ('Empty', 'CompleteCommit', 'CompleteAbort') AND size(partitions) > 0)
  OR owner <> transactional_id
  OR (next_producer_id >= 0 AND (state NOT IN ('PrepareCommit', 'PrepareAbort') OR transaction_producer_epoch < 32766))
  OR (previous_offset >= cleaned_to AND previous_producer_id >= 0 AND previous_producer_id <> transaction_producer_id
    AND previous_producer_id <> previous_id AND previous_producer_id <> coalesce(previous_of_previous, -1))
UNION ALL
SELECT '__transaction_state', state_partition, state_offset, transactional_id, state, producer_id, producer_epoch, NULL, timeout_ms,
       start_ms, last_update_ms, NULL
FROM coordinator JOIN (SELECT topic, count(*) AS partitions FROM metadata_partitions GROUP BY topic) known
  ON known.topic = coordinator.topic
WHERE is_latest AND (coordinator.partition < 0 OR coordinator.partition >= partitions)
UNION ALL
SELECT '__transaction_state', state_partition, state_offset, transactional_id, state, producer_id, producer_epoch, NULL, timeout_ms,
       start_ms, last_update_ms, NULL
FROM coordinator
WHERE topic IS NOT NULL AND (SELECT min(base_offset) FROM batches WHERE topic = '__cluster_metadata') = 0
  AND EXISTS (SELECT 1 FROM metadata_topics) AND NOT EXISTS (
    SELECT 1 FROM state_metadata WHERE type = 'TopicRecord' AND get_json_object(record, '$.name') = coordinator.topic)
