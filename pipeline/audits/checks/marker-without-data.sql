-- title: a marker without a transaction
-- severity: warning
-- The marker ends a transaction that has no records here. That is normal if the producer had added the partition (a producer may add one
-- and write nothing; a marker may be sent twice), or if the records are gone. This one has no such reason. Or the transaction has records,
-- and its coordinator never had the producer, which gets its id there. Checked if all of `__transaction_state` is in the directory, and the
-- cleaner has not processed it.
SELECT ended.directory, ended.topic, ended.partition, marker_offset AS offset, ended.producer_id, marker_epoch AS producer_epoch,
       marker, records
FROM transactions ended JOIN partitions USING (directory, topic, partition)
WHERE marker IS NOT NULL AND (first_offset IS NOT NULL OR (marker_offset >= cleaned_to AND (turn > 0 OR log_start = 0)))
  AND EXISTS (SELECT 1 FROM whole_topics WHERE whole_topics.topic = '__transaction_state' AND is_whole)
  AND EXISTS ( -- in a directory in use, what is newer than the list of its files may be newer than the coordinators that were read
    SELECT 1 FROM batches
    WHERE batches.directory = ended.directory AND batches.topic = ended.topic AND batches.partition = ended.partition AND base_offset = marker_offset
      AND (segment_base < last_segment_base OR (segment_base = last_segment_base AND position < last_segment_bytes)))
  AND NOT EXISTS (
    SELECT 1 FROM coordinator WHERE coordinator.producer_id = ended.producer_id
      AND (first_offset IS NOT NULL OR (coordinator.topic = ended.topic AND coordinator.partition = ended.partition)))
