-- title: a batch that was accepted instead of refused
-- severity: error
-- needs: journal
-- The producer had been fenced: its transactional id had a newer epoch before the batch was sent. Or sequence numbers are missing between
-- this batch and what was, or may have been, accepted before of this producer, epoch and partition: the records in between were rejected.
SELECT sent.run, sent.id, sent.topic, sent.partition, acked_offset AS offset, sent.client_id, sent.software, sent.producer_id,
       sent.producer_epoch, sent.base_sequence, expected_sequence
FROM (
  SELECT *, max(base_sequence + count) OVER (PARTITION BY run, era, topic, topic_id, partition, producer_id, producer_epoch ORDER BY id
                                             ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS expected_sequence
  FROM produces
  WHERE producer_id >= 0 AND NOT without_records AND count > 0
    AND NOT (outcome = 'answered' AND coalesce(size(faults), 0) = 0
             AND error IN ('NOT_LEADER_OR_FOLLOWER', 'NOT_ENOUGH_REPLICAS', 'OUT_OF_ORDER_SEQUENCE_NUMBER', 'INVALID_PRODUCER_EPOCH'))
) sent
LEFT JOIN (SELECT run, era, producer_id, producer_epoch, min(end_us) AS granted_us FROM granted GROUP BY ALL) newer
  ON newer.run = sent.run AND newer.era = sent.era AND newer.producer_id = sent.producer_id
  AND newer.producer_epoch > sent.producer_epoch AND granted_us < sent.ts_us AND sent.transactional_id <> ''
WHERE error = 'NONE' AND (newer.run IS NOT NULL
  OR (base_sequence > expected_sequence AND base_sequence - expected_sequence < 1073741824))
GROUP BY ALL
