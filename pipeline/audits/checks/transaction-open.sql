-- title: a transaction is open
-- severity: info
-- No marker has been written yet, the transaction is ongoing in the coordinator's log, and its timeout has not expired: that is normal for
-- an active producer. While it is open, read_committed consumers get nothing after its first record. `transaction-overdue` has those that
-- are too old.
SELECT directory, topic, partition, offset, producer_id, producer_epoch, transactional_id, state, age_ms, timeout_ms,
       pinned_offsets
FROM open_transactions WHERE coalesce(age_ms, 0) <= timeout_ms + 30000
