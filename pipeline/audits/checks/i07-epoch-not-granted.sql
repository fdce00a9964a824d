-- title: a producer epoch that the coordinator did not grant (conformance 3 I07)
-- severity: error
-- needs: journal
-- Only the coordinator grants epochs to a transactional producer, in responses to InitProducerId and EndTxn. None of them had this epoch.
SELECT DISTINCT sent.run, sent.id, sent.client_id, software, software_version, transactional_id, sent.producer_id,
       sent.producer_epoch
FROM producing sent
WHERE api <> 'InitProducerId' AND sent.producer_id >= 0
  AND EXISTS (SELECT 1 FROM granted WHERE granted.run = sent.run AND granted.era = sent.era
                AND granted.producer_id = sent.producer_id AND granted.id < sent.id)
  AND NOT EXISTS (SELECT 1 FROM granted WHERE granted.run = sent.run AND granted.era = sent.era AND granted.id < sent.id
                    AND granted.producer_id = sent.producer_id AND granted.producer_epoch = sent.producer_epoch)
