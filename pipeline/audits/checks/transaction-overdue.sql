-- title: an open transaction is overdue
-- severity: warning
-- In the newest records of the directory its timeout has been over for 30 seconds, and the coordinator has not ended it: it was not
-- running, or does not get its markers through. Without the coordinator's log, 15 minutes count, the longest timeout that
-- brokers allow by default. Consumers that read committed get nothing behind its first record.
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
WHERE coalesce(age_ms, 0) > timeout_ms + 30000
