-- title: a request in a transaction before EndTxn was answered (conformance 3 I15)
-- severity: error
-- needs: journal
-- Between EndTxn and its response a producer sends nothing with that epoch: it might become part of the next transaction.
SELECT sent.run, sent.id, sent.client_id, sent.software, sent.software_version, sent.api, sent.transactional_id,
       sent.producer_id, sent.producer_epoch, ending.id AS end_id
FROM producing sent JOIN producing ending
  ON ending.run = sent.run AND ending.era = sent.era AND ending.transactional_id = sent.transactional_id
  AND ending.producer_id = sent.producer_id AND ending.producer_epoch = sent.producer_epoch AND ending.api = 'EndTxn'
WHERE sent.api IN ('Produce', 'AddPartitionsToTxn', 'AddOffsetsToTxn', 'TxnOffsetCommit')
  AND sent.ts_us > ending.ts_us AND sent.ts_us < ending.end_us
