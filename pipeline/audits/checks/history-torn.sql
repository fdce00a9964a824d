-- title: a transaction was read in part
-- severity: error
-- needs: history
-- The producer does not know the transaction's outcome. A read_committed consumer polled one of its records, so it was committed; another
-- acknowledged record of it is at an offset that such a consumer passed without getting it.
SELECT topic, partition, acked_offset AS offset, missing.id AS id, missing.client AS client, transaction, poll_runs.client AS consumer, run
FROM (SELECT *, acked_partition AS partition FROM sent_records WHERE is_acked AND acked_offset >= 0 AND outcome = 'unknown') missing
JOIN poll_runs USING (topic, partition)
WHERE isolation = 'read_committed' AND start_offset <= acked_offset AND reached_offset > acked_offset
  AND EXISTS (SELECT 1 FROM sent_records other JOIN polled_records seen ON seen.topic = other.topic AND seen.id = other.id
              WHERE seen.isolation = 'read_committed' AND other.client = missing.client AND other.transaction = missing.transaction)
  AND NOT EXISTS (SELECT 1 FROM polled_records own WHERE own.topic = missing.topic AND own.partition = missing.partition
                  AND own.offset = missing.acked_offset AND own.client = poll_runs.client AND own.run = poll_runs.run)
