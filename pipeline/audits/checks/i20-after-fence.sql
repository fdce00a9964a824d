-- title: a fenced producer continues (conformance 3 I20)
-- severity: error
-- needs: journal
-- The producer was fenced or is not authorized, and continues with the same producer id and epoch. Only a new instance may start over.
SELECT sent.run, sent.id, sent.client_id, sent.software, sent.software_version, sent.api, sent.transactional_id,
       sent.producer_id, sent.producer_epoch, fence.id AS fence_id, fence.error AS refusal
FROM producing sent JOIN producing fence
  ON fence.run = sent.run AND fence.era = sent.era AND fence.transactional_id = sent.transactional_id
  AND fence.producer_id = sent.producer_id AND fence.producer_epoch = sent.producer_epoch
  AND fence.connection = sent.connection
WHERE (fence.error IN ('PRODUCER_FENCED', 'TRANSACTIONAL_ID_AUTHORIZATION_FAILED')
       OR (fence.error = 'INVALID_PRODUCER_EPOCH' AND fence.api <> 'Produce'))
  AND sent.id > fence.id AND sent.ts_us >= fence.end_us AND sent.api <> 'InitProducerId'
