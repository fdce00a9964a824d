-- title: a transaction is open
-- severity: info
-- No marker has come yet, in the coordinator's log the transaction is ongoing, and its timeout is not over: as each transaction of
-- a producer that is working. While it is open, consumers that read committed get nothing behind its first record.
-- `transaction-overdue` has those that are too old.
SELECT directory, topic, partition, offset, producer_id, producer_epoch, transactional_id, state, age_ms, timeout_ms,
       pinned_offsets
FROM (
  SELECT open.directory, open.topic, open.partition, first_offset AS offset, open.producer_id, epoch AS producer_epoch,
         transactional_id, state, newest_ms - if(start_ms > 0, start_ms, first_ms) AS age_ms,
         coalesce(timeout_ms, 900000) AS timeout_ms, log_end - first_offset AS pinned_offsets
  FROM transactions open
  JOIN partitions USING (directory, topic, partition)
  CROSS JOIN (SELECT max(max_timestamp_ms) AS newest_ms FROM batches WHERE max_timestamp_ms <= now_ms())
  LEFT JOIN coordinator ON is_latest AND coordinator.producer_id = open.producer_id
    AND coordinator.topic = open.topic AND coordinator.partition = open.partition
  WHERE marker IS NULL AND first_offset IS NOT NULL
    AND (state IN ('Ongoing', 'PrepareCommit', 'PrepareAbort') OR NOT EXISTS (SELECT 1 FROM state_transactions)))
WHERE coalesce(age_ms, 0) <= timeout_ms + 30000
