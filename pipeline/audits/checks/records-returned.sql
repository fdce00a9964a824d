-- title: deleted records that are back
-- severity: info
-- The leader epochs of a log begin behind its start, and a later epoch follows: DeleteRecords or retention moved the log start, the broker
-- was killed before it wrote the new one (once in a minute), and it began again with the old one. Consumers get the records once more.
WITH begun AS (
  SELECT directory, topic, partition, min(start_offset) AS first_entry, min(epoch) AS first_epoch, max(epoch) AS last_epoch
  FROM epochs GROUP BY ALL
)
SELECT directory, topic, partition, log_start AS offset, least(first_entry, log_end) AS deleted_to, max(leader_epoch) AS batch_epoch
FROM begun JOIN partitions USING (directory, topic, partition) JOIN ordered USING (directory, topic, partition)
WHERE first_entry > log_start AND damage IS NULL AND leader_epoch >= 0 AND last_offset >= log_start AND base_offset < first_entry
  AND leader_epoch <= first_epoch AND leader_epoch < last_epoch
  AND directory IN (SELECT brokers.directory FROM brokers WHERE is_clean)
GROUP BY directory, topic, partition, log_start, first_entry, log_end
