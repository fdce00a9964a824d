-- title: an open transaction that no coordinator knows
-- severity: error
-- needs: live
-- The partition's leader has an open transaction of a producer (DescribeProducers), and no coordinator has an ongoing transaction of that
-- producer there (DescribeTransactions): no marker will come, and read_committed consumers are stuck at its first record until an
-- administrator aborts it (`kafka-transactions.sh abort`).
SELECT topic, partition, transaction_offset AS offset, producer_id, producer_epoch, coordinator_epoch, last_timestamp_ms
FROM live_producers
JOIN live_partitions USING (topic, partition)
WHERE transaction_offset >= 0 AND has_transactions AND NOT EXISTS (
  SELECT 1 FROM live_transactions known
  WHERE known.producer_id = live_producers.producer_id AND known.topic = live_producers.topic
    AND known.partition = live_producers.partition AND known.state IN ('Ongoing', 'PrepareCommit', 'PrepareAbort'))
