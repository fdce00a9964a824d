-- title: a transaction is open
-- severity: info
-- No marker has come yet, in the coordinator's log the transaction is ongoing, and its timeout is not over: as each transaction of
-- a producer that is working. While it is open, consumers that read committed get nothing behind its first record.
-- `transaction-overdue` has those that are too old.
SELECT directory, topic, partition, offset, producer_id, producer_epoch, transactional_id, state, age_ms, timeout_ms,
       pinned_offsets
FROM open_transactions WHERE coalesce(age_ms, 0) <= timeout_ms + 30000
