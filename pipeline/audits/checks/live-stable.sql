-- title: a last stable offset that nothing holds back
-- severity: error
-- needs: live
-- read_committed consumers get nothing from this offset on, and the leader knows no producer with an open transaction there
-- (DescribeProducers).
SELECT topic, partition, last_stable_offset AS offset, high_watermark
FROM live_partitions
WHERE last_stable_offset < high_watermark AND has_producers AND NOT EXISTS (
  SELECT 1 FROM live_producers
  WHERE live_producers.topic = live_partitions.topic AND live_producers.partition = live_partitions.partition
    AND transaction_offset BETWEEN 0 AND last_stable_offset)
