-- title: records missing from a Fetch response
-- severity: error
-- needs: journal
-- The log has records between the requested offset, or a batch of the response, and the next batch of the response: the consumer continues
-- after them, and never receives them.
SELECT given.run, given.id, given.topic, given.partition, min(batches.base_offset) AS offset, given.client_id, given.software,
       fetch_offset, records_from, delivered_to
FROM current_fetches given
JOIN batches ON batches.topic = given.topic AND batches.partition = given.partition AND batches.damage IS NULL
  AND batches.last_offset >= fetch_offset AND batches.base_offset < delivered_to AND batches.record_count > 0
JOIN (SELECT topic, partition, max(log_start) AS log_start, max(cleaned_to) AS cleaned_to FROM partitions GROUP BY ALL)
  known ON known.topic = given.topic AND known.partition = given.partition
WHERE given.batches IS NOT NULL AND coalesce(replica_id, -1) < 0 AND batches.base_offset >= greatest(log_start, cleaned_to)
  AND size(filter(given.batches, each -> each.base_offset <= batches.base_offset AND each.last_offset >= batches.last_offset)) = 0
GROUP BY ALL
