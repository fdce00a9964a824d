-- The coordinators' decisions about transactions: one row per decision and partition; a decision that was written twice counts once.
-- `is_whole`: whether the log of that coordinator has all its records. `is_complete`: whether all markers have been written.
SELECT decided.transactional_id, decided.producer_id, decided.producer_epoch, decided.state, decided.state_offset,
       decided.last_update_ms, decided.client_transaction_version, decided.topic, decided.partition,
       coalesce(log_start = 0 AND cleaned_to = 0, false) AS is_whole,
       coalesce(completed_offset > decided.state_offset, false) AS is_complete
FROM coordinator decided
JOIN (SELECT transactional_id, offset AS state_offset,
             lag(state) OVER (PARTITION BY transactional_id ORDER BY offset) AS previous_state,
             max(if(state IN ('CompleteCommit', 'CompleteAbort'), offset, NULL)) OVER (PARTITION BY transactional_id) AS completed_offset
      FROM state_transactions) before USING (transactional_id, state_offset)
LEFT JOIN (SELECT partition AS state_partition, max(log_start) AS log_start, max(cleaned_to) AS cleaned_to FROM partitions
           WHERE topic = '__transaction_state' GROUP BY ALL) USING (state_partition)
WHERE state IN ('PrepareCommit', 'PrepareAbort') AND previous_state IS DISTINCT FROM state AND decided.topic IS NOT NULL
