-- title: the leader epoch checkpoint does not fit the log
-- severity: error
-- `leader-epoch-checkpoint` has the first offset of each leader epoch; followers truncate by it (KIP-101). The batches contradict it. After
-- DeleteRecords an epoch begins at the log start, though its batch, and older ones, still exist; and a broker that is running or was killed
-- has written the epochs from before the new log start; later starts leave it so (`records-returned`). The metadata show whether there was one.
SELECT epochs.directory, epochs.topic, epochs.partition, start_offset AS offset, epoch,
       max(ordered.leader_epoch) AS batch_epoch, min(ordered.base_offset) AS batch_offset
FROM epochs JOIN ordered USING (directory, topic, partition) JOIN partitions USING (directory, topic, partition)
LEFT JOIN (SELECT directory, max(is_clean) AS is_clean FROM brokers GROUP BY directory) stops ON stops.directory = epochs.directory
WHERE damage IS NULL AND ordered.leader_epoch >= 0
  AND ((ordered.leader_epoch = epoch AND greatest(base_offset, log_start) < start_offset)
    OR (ordered.leader_epoch < epoch AND start_offset BETWEEN base_offset AND last_offset))
  AND (entry > 0 OR start_offset > log_end
       OR (coalesce(is_clean, false) AND EXISTS (SELECT 1 FROM leader_epochs latest WHERE latest.topic_id = partitions.topic_id
                                                 AND latest.partition = epochs.partition AND latest.known_epoch <= epochs.epoch)))
GROUP BY ALL
