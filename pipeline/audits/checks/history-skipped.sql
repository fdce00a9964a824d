-- title: a consumer skipped a record
-- severity: error
-- needs: history
-- The record was acknowledged, and is visible to this consumer: its transaction was committed, or there is none, and other consumers polled
-- it; or this consumer uses read_uncommitted. It started before the record's offset, passed it, and did not get it.
SELECT topic, partition, acked_offset AS offset, known.id AS id, poll_runs.client AS client, run, start_offset, reached_offset
FROM (SELECT *, acked_partition AS partition FROM sent_records WHERE is_acked AND acked_offset >= 0 AND NOT is_failed) known
JOIN poll_runs USING (topic, partition)
WHERE start_offset <= acked_offset AND reached_offset > acked_offset
  AND ((outcome IN ('none', 'committed')
        AND EXISTS (SELECT 1 FROM polled_records other WHERE other.topic = known.topic AND other.id = known.id))
       OR (outcome IN ('aborted', 'unknown') AND isolation = 'read_uncommitted'))
  AND NOT EXISTS (SELECT 1 FROM polled_records own WHERE own.topic = known.topic AND own.partition = known.partition
                  AND own.offset = known.acked_offset AND own.client = poll_runs.client AND own.run = poll_runs.run)
