-- title: a transaction ended in two ways
-- severity: error
-- The coordinator decided one thing, and a partition's marker says the other: a transaction is no longer all or nothing.
-- Looked at where the decision's epoch is its own (KIP-890), so that it and its markers can be told from others.
WITH decided AS (
  SELECT DISTINCT transactional_id, producer_id, producer_epoch, topic, partition, state,
         size(collect_set(state_offset) OVER (PARTITION BY producer_id, producer_epoch, topic, partition)) AS decisions
  FROM coordinator
  WHERE state IN ('PrepareCommit', 'PrepareAbort') AND client_transaction_version >= 2
)
SELECT produced.directory, produced.topic, produced.partition, base_offset AS offset, produced.producer_id,
       produced.producer_epoch, transactional_id, state AS coordinator_says, control_type AS marker, segment, position
FROM produced JOIN decided USING (producer_id, producer_epoch, topic, partition)
WHERE decisions = 1 AND is_control AND control_type <> upper(substr(state, 8))
