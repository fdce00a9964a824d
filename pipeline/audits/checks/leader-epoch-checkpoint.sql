-- title: the leader epoch checkpoint does not fit the log
-- severity: error
-- `leader-epoch-checkpoint` has the first offset of each leader epoch; followers truncate by it (KIP-101). The batches contradict it.
-- After DeleteRecords an epoch begins where the log does, though its batch, and older ones, are there still.
SELECT epochs.directory, epochs.topic, epochs.partition, start_offset AS offset, epoch,
       max(ordered.leader_epoch) AS batch_epoch, min(ordered.base_offset) AS batch_offset
FROM epochs JOIN ordered USING (directory, topic, partition) JOIN partitions USING (directory, topic, partition)
WHERE damage IS NULL AND ordered.leader_epoch >= 0
  AND ((ordered.leader_epoch = epoch AND greatest(base_offset, log_start) < start_offset)
    OR (ordered.leader_epoch < epoch AND start_offset BETWEEN base_offset AND last_offset))
GROUP BY ALL
