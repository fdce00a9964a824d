-- title: aborted records delivered under read_committed
-- severity: error
-- needs: journal
-- A read_committed consumer received records of an aborted transaction that the Fetch response did not list among the aborted ones, or
-- records beyond the last stable offset in the same response. It has no means to filter them out. (Brokers note that offset before they
-- read: later responses have such records below it.)
SELECT given.run, given.id, given.topic, given.partition, given.base_offset AS offset, given.client_id, software,
       given.producer_id, first_offset AS transaction_from, marker_offset AS transaction_to, last_stable_offset
FROM (SELECT run, id, client_id, software, topic, partition, aborted_transactions, last_stable_offset, batch.base_offset,
             batch.producer_id, batch.last_offset, later_stable
      FROM (SELECT *, min(if(error = 'NONE', last_stable_offset, NULL)) OVER behind AS later_stable FROM current_fetches
            WINDOW behind AS (PARTITION BY run, era, topic, partition, broker ORDER BY id ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)) fetches
      CROSS JOIN LATERAL explode(batches) AS batch_rows(batch)
      WHERE isolation AND batch.transactional AND NOT batch.control) given
LEFT JOIN (SELECT DISTINCT topic, partition, producer_id, first_offset, marker_offset FROM transactions
           WHERE marker = 'ABORT') aborted
  ON aborted.topic = given.topic AND aborted.partition = given.partition AND aborted.producer_id = given.producer_id
  AND given.base_offset BETWEEN first_offset AND marker_offset
WHERE (given.base_offset >= last_stable_offset AND NOT coalesce(later_stable > given.last_offset, false))
  OR (first_offset IS NOT NULL AND NOT coalesce(size(filter(aborted_transactions,
        each -> each.producer_id = given.producer_id AND each.first_offset <= given.base_offset)) > 0, false))
