-- title: an open transaction is overdue
-- severity: warning
-- In the newest records of the directory its timeout has been over for 30 seconds, and the coordinator has not ended it: it was not
-- running, or does not get its markers through. Without the coordinator's log, 15 minutes count, the longest timeout that
-- brokers allow by default. Consumers that read committed get nothing behind its first record.
SELECT directory, topic, partition, offset, producer_id, producer_epoch, transactional_id, state, age_ms, timeout_ms,
       pinned_offsets
FROM open_transactions WHERE coalesce(age_ms, 0) > timeout_ms + 30000
