-- The transactions without a marker that their coordinator has not ended, if the coordinators' logs are in the directory, with their age
-- relative to the newest records. An unknown timeout counts as 15 minutes, the longest that brokers allow by default.
SELECT open.directory, open.topic, open.partition, first_offset AS offset, open.producer_id, epoch AS producer_epoch,
       transactional_id, state, newest_ms - if(start_ms > 0, start_ms, first_ms) AS age_ms,
       coalesce(timeout_ms, 900000) AS timeout_ms, log_end - first_offset AS pinned_offsets
FROM transactions open
JOIN partitions USING (directory, topic, partition)
CROSS JOIN (SELECT max(max_timestamp_ms) AS newest_ms FROM batches WHERE max_timestamp_ms <= now_ms())
LEFT JOIN coordinator ON is_latest AND coordinator.producer_id = open.producer_id
  AND coordinator.topic = open.topic AND coordinator.partition = open.partition
WHERE marker IS NULL AND first_offset IS NOT NULL
  AND (state IN ('Ongoing', 'PrepareCommit', 'PrepareAbort')
    OR NOT EXISTS (SELECT 1 FROM whole_topics WHERE whole_topics.topic = '__transaction_state'))
