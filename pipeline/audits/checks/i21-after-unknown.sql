-- title: an unknown producer continues (conformance 3 I21)
-- severity: warning
-- needs: journal
-- The broker does not know the producer (any more). It has to end its transaction or request a new id, not continue as before.
SELECT sent.run, sent.id, sent.topic, sent.partition, sent.client_id, sent.software, sent.software_version, sent.producer_id,
       sent.producer_epoch, sent.base_sequence, refused.id AS refused_id, refused.error AS refusal
FROM produces sent JOIN produces refused
  ON refused.run = sent.run AND refused.era = sent.era AND refused.producer_id = sent.producer_id
  AND refused.producer_epoch = sent.producer_epoch AND refused.topic = sent.topic AND refused.partition = sent.partition
WHERE refused.error IN ('UNKNOWN_PRODUCER_ID', 'INVALID_PRODUCER_ID_MAPPING') AND sent.id > refused.id AND sent.ts_us >= refused.end_us
  AND sent.producer_id >= 0
