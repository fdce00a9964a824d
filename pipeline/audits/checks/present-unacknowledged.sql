-- title: records in the log that were never acknowledged
-- severity: warning
-- needs: journal
-- A producer's records are in the log, and none of its attempts got a successful response. It believes that they failed, or stopped
-- retrying; sending them again produces duplicates.
SELECT sent.run, min(sent.id) AS id, sent.topic, sent.partition, batches.base_offset AS offset, sent.client_id, sent.software,
       sent.producer_id, sent.producer_epoch, sent.base_sequence, sent.count, count(*) AS attempts,
       collect_set(coalesce(error, outcome)) AS answers
FROM current_produces sent
JOIN batches ON batches.topic = sent.topic AND batches.partition = sent.partition AND batches.base_offset = stamped_offset
  AND batches.producer_id = sent.producer_id AND batches.producer_epoch = sent.producer_epoch
  AND batches.base_sequence = sent.base_sequence AND batches.record_count = sent.count
  AND batches.max_timestamp_ms = sent.max_timestamp_ms
WHERE acks <> 0 AND coalesce(error, '') NOT IN ('NONE', 'DUPLICATE_SEQUENCE_NUMBER') AND batches.damage IS NULL
  AND NOT EXISTS (
    SELECT 1 FROM current_produces acked
    WHERE acked.topic = sent.topic AND acked.partition = sent.partition AND acked.error IN ('NONE', 'DUPLICATE_SEQUENCE_NUMBER')
      AND (acked.acked_offset = batches.base_offset OR (sent.producer_id >= 0 AND acked.producer_id = sent.producer_id
        AND acked.producer_epoch = sent.producer_epoch AND acked.base_sequence = sent.base_sequence)))
GROUP BY ALL
