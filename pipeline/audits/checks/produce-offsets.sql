-- title: offsets assigned twice, or backwards
-- severity: error
-- needs: journal
-- Two batches were acknowledged at the same offsets, or a batch that was sent after another one had been acknowledged was put before it:
-- acknowledged records were overwritten. Retries of one batch are one batch. Checked if all in-sync replicas had to have it (acks=all).
SELECT run, id, topic, partition, acked_offset AS offset, client_id, software, count, given_to AS given_before_to
FROM (
  SELECT *, max_by(acked_offset + count, end_us) OVER (PARTITION BY run, era, topic, topic_id, partition ORDER BY id
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS given_to,
         max(end_us) OVER (PARTITION BY run, era, topic, topic_id, partition ORDER BY id
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS answered_us,
         lag(acked_offset) OVER (PARTITION BY run, era, topic, topic_id, partition, producer_id, producer_epoch, base_sequence, crc
            ORDER BY id) AS same_before
  FROM current_produces
  WHERE error = 'NONE' AND acks = -1 AND acked_offset >= 0 AND count > 0 AND NOT without_records
)
WHERE acked_offset < given_to AND answered_us < ts_us AND NOT coalesce(same_before = acked_offset AND producer_id >= 0, false)
