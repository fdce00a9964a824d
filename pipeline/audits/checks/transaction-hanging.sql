-- title: a transaction hangs
-- severity: error
-- Its records are in the log without a marker, and no coordinator will ever send one: it has completed the transaction, or does not know it
-- (KIP-664, KIP-890). read_committed consumers are stuck at its first record until it is aborted (`kafka-transactions.sh abort`). Checked
-- in the longest replica, as one that stopped earlier may be without the marker; and if all partitions of `__transaction_state` are in the
-- directory, as another coordinator may know it.
SELECT open.directory, open.topic, open.partition, first_offset AS offset, open.producer_id, epoch AS producer_epoch,
       records, newest_ms - first_ms AS age_ms, log_end - first_offset AS pinned_offsets, latest.transactional_id,
       latest.state AS coordinator_state
FROM transactions open
JOIN partitions USING (directory, topic, partition)
JOIN (SELECT topic, partition, max(log_end) AS longest FROM partitions GROUP BY topic, partition) replicas
  ON replicas.topic = open.topic AND replicas.partition = open.partition AND replicas.longest = log_end
CROSS JOIN (SELECT max(max_timestamp_ms) AS newest_ms FROM batches WHERE max_timestamp_ms <= now_ms())
LEFT JOIN (SELECT DISTINCT producer_id, transactional_id, state FROM coordinator WHERE is_latest) latest
  ON latest.producer_id = open.producer_id
WHERE marker IS NULL AND first_offset IS NOT NULL AND EXISTS (SELECT 1 FROM whole_topics WHERE whole_topics.topic = '__transaction_state')
  AND EXISTS ( -- in a directory in use, what is newer than the list of its files may be newer than the coordinators that were read
    SELECT 1 FROM batches
    WHERE batches.directory = open.directory AND batches.topic = open.topic AND batches.partition = open.partition AND base_offset = first_offset
      AND (segment_base < last_segment_base OR (segment_base = last_segment_base AND position < last_segment_bytes)))
  AND NOT EXISTS (
    SELECT 1 FROM coordinator
    WHERE is_latest AND state IN ('Ongoing', 'PrepareCommit', 'PrepareAbort') AND coordinator.producer_id = open.producer_id
      AND coordinator.topic = open.topic AND coordinator.partition = open.partition)
