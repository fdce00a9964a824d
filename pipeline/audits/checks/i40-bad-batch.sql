-- title: a batch that is wrong in itself (conformance 3 I40)
-- severity: error
-- needs: journal
-- The broker rejected it (CORRUPT_MESSAGE, INVALID_RECORD, INVALID_TIMESTAMP), or its header contradicts itself: another number of records
-- than offsets, several batches where one is allowed, or a control batch from a client.
SELECT run, id, topic, partition, client_id, software, software_version, producer_id, base_sequence, count, batch_count, control,
       error
FROM produces
WHERE error IN ('CORRUPT_MESSAGE', 'INVALID_RECORD', 'INVALID_TIMESTAMP') OR control OR batch_count > 1
  OR (batch_count = 1 AND count <> stamped_last_offset - stamped_offset + 1)
