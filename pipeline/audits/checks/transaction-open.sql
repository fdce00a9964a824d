-- title: a transaction is open
-- severity: warning
-- No marker has come yet, and in the coordinator's log the transaction is ongoing (or its log is not in this directory). While it
-- is open, consumers that read committed get nothing behind its first record. `overdue`: older than its timeout, which the
-- coordinator would end it for.
SELECT open.directory, open.topic, open.partition, first_offset AS offset, open.producer_id, epoch AS producer_epoch,
       transactional_id, state, newest_ms - first_ms AS age_ms, newest_ms - first_ms > timeout_ms AS overdue,
       log_end - first_offset AS pinned_offsets
FROM transactions open
JOIN partitions USING (directory, topic, partition)
CROSS JOIN (SELECT max(max_timestamp_ms) AS newest_ms FROM batches WHERE max_timestamp_ms <= now_ms())
LEFT JOIN coordinator ON is_latest AND coordinator.producer_id = open.producer_id
  AND coordinator.topic = open.topic AND coordinator.partition = open.partition
WHERE marker IS NULL AND first_offset IS NOT NULL
  AND (state IN ('Ongoing', 'PrepareCommit', 'PrepareAbort') OR NOT EXISTS (SELECT 1 FROM state_transactions))
