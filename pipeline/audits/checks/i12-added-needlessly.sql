-- title: a needless AddPartitionsToTxn (conformance 3 I12)
-- severity: warning
-- needs: journal
-- Since KIP-890 (Produce from version 12 on) writing to a partition adds it. An additional AddPartitionsToTxn costs a round trip.
SELECT run, id, client_id, software, software_version, transactional_id, version
FROM producing asked
WHERE api = 'AddPartitionsToTxn' AND version < 4 AND EXISTS (
  SELECT 1 FROM producing sent WHERE sent.run = asked.run AND sent.era = asked.era AND sent.api = 'Produce'
    AND sent.version >= 12 AND sent.transactional_id = asked.transactional_id AND sent.producer_id = asked.producer_id
    AND sent.producer_epoch = asked.producer_epoch)
