-- title: an unknown producer goes on (I21)
-- severity: warning
-- needs: journal
-- The broker does not know the producer (any more). It has to end its transaction or ask for a new identity, not go on as before.
SELECT sent.run, sent.id, sent.topic, sent.partition, sent.client_id, sent.software, sent.software_version, sent.producer_id,
       sent.producer_epoch, sent.base_sequence, told.id AS told_id, told.error AS told
FROM produces sent JOIN produces told
  ON told.run = sent.run AND told.era = sent.era AND told.producer_id = sent.producer_id
  AND told.producer_epoch = sent.producer_epoch AND told.topic = sent.topic AND told.partition = sent.partition
WHERE told.error IN ('UNKNOWN_PRODUCER_ID', 'INVALID_PRODUCER_ID_MAPPING') AND sent.id > told.id AND sent.ts_us >= told.end_us
  AND sent.producer_id >= 0
