-- title: delivered records that differ from the log
-- severity: error
-- needs: journal
-- A consumer was given a batch that the log has not, or not like this: another last offset, or another producer. Looked at where
-- the log has not been cut or cleaned.
SELECT given.run, given.id, given.topic, given.partition, given.base_offset AS offset, given.client_id, given.software,
       given.last_offset, given.producer_id, max(batches.last_offset) AS log_last_offset, max(batches.producer_id) AS log_producer_id
FROM (SELECT run, id, topic, partition, client_id, software, batch.base_offset, batch.last_offset, batch.producer_id
      FROM current_fetches LATERAL VIEW explode(batches) AS batch) given
JOIN (SELECT topic, partition, max(log_end) AS log_end, max(greatest(log_start, cleaned_to)) AS judged_from, max(is_damaged) AS is_damaged
      FROM partitions GROUP BY ALL) USING (topic, partition)
LEFT JOIN batches ON batches.topic = given.topic AND batches.partition = given.partition AND batches.base_offset = given.base_offset
  AND batches.damage IS NULL
WHERE given.base_offset >= judged_from AND given.last_offset < log_end AND NOT is_damaged
GROUP BY ALL
HAVING coalesce(max(if(batches.last_offset = given.last_offset AND batches.producer_id = given.producer_id, 1, 0)), 0) = 0
