-- title: acknowledged records that are missing in the log
-- severity: error
-- needs: journal
-- A producer got an acknowledgement with an offset, and the records are not there: acknowledged data is lost. Offsets below the log start
-- or within the cleaner's reach are not checked, nor deleted topics.
SELECT sent.run, sent.id, topic, partition, acked_offset AS offset, sent.client_id, software, software_version, acks,
       sent.producer_id, sent.producer_epoch, sent.base_sequence, sent.count, log_end
FROM current_produces sent
JOIN (SELECT topic, partition, max(log_end) AS log_end, max(greatest(log_start, cleaned_to)) AS judged_from
      FROM partitions GROUP BY ALL) USING (topic, partition)
WHERE error = 'NONE' AND acked_offset >= judged_from AND count > 0 AND NOT without_records
  AND NOT EXISTS (
    SELECT 1 FROM batches
    WHERE batches.topic = sent.topic AND batches.partition = sent.partition AND batches.base_offset = sent.acked_offset
      AND damage IS NULL AND batches.producer_id = sent.producer_id AND batches.base_sequence = sent.base_sequence)
