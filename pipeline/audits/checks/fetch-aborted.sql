-- title: an aborted transaction that the log does not have
-- severity: error
-- needs: journal
-- A Fetch response to a read_committed consumer lists a transaction as aborted, but the log has no abort of this producer that begins
-- there, or the list has one twice: the consumer leaves out records that were committed.
SELECT run, id, topic, partition, min(given.first_offset) AS offset, client_id, software, min(given.producer_id) AS producer_id
FROM (
SELECT given.run, given.id, given.topic, given.partition, given.first_offset, given.client_id, given.software, given.producer_id
FROM (SELECT run, id, topic, partition, client_id, software, aborted.first_offset, aborted.producer_id
      FROM current_fetches CROSS JOIN LATERAL explode(aborted_transactions) AS aborted_rows(aborted) WHERE outcome = 'answered') given
JOIN (SELECT topic, partition, max(log_end) AS log_end, max(greatest(log_start, cleaned_to)) AS judged_from, max(is_damaged) AS is_damaged
      FROM partitions GROUP BY ALL) logs ON logs.topic = given.topic AND logs.partition = given.partition
WHERE NOT is_damaged AND (given.first_offset BETWEEN judged_from AND log_end OR given.first_offset < 0)
  AND NOT EXISTS (SELECT 1 FROM transactions WHERE transactions.topic = given.topic AND transactions.partition = given.partition
                  AND transactions.producer_id = given.producer_id AND transactions.first_offset = given.first_offset AND marker = 'ABORT')
UNION ALL
SELECT run, id, topic, partition, CAST(NULL AS BIGINT), client_id, software, CAST(NULL AS BIGINT)
FROM current_fetches WHERE outcome = 'answered' AND size(array_distinct(aborted_transactions)) < size(aborted_transactions)
) given
GROUP BY run, id, topic, partition, client_id, software
