-- title: an open transaction is overdue
-- severity: warning
-- According to the newest records of the directory its timeout expired more than 30 seconds ago, and the coordinator has not ended it: it
-- was not running, or cannot write its markers. Without the coordinator's log, 15 minutes count, the longest timeout that brokers allow by
-- default. read_committed consumers get nothing after its first record. Or a decided transaction was never completed though all its markers
-- are there: the transactional id cannot begin another one.
SELECT directory, topic, partition, offset, producer_id, producer_epoch, transactional_id, state, age_ms, timeout_ms,
       pinned_offsets
FROM open_transactions WHERE coalesce(age_ms, 0) > timeout_ms + 30000
UNION ALL
SELECT DISTINCT CAST(NULL AS STRING), '__transaction_state', state_partition, state_offset, producer_id, producer_epoch, transactional_id, state,
       newest_ms - last_update_ms, timeout_ms, CAST(NULL AS BIGINT)
FROM coordinator CROSS JOIN (SELECT max(max_timestamp_ms) AS newest_ms FROM batches WHERE max_timestamp_ms <= now_ms())
WHERE is_latest AND state IN ('PrepareCommit', 'PrepareAbort') AND newest_ms - last_update_ms > timeout_ms + 30000
  AND NOT EXISTS (SELECT 1 FROM open_transactions each WHERE each.producer_id = coordinator.producer_id)
