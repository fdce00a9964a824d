-- title: offsets of a group that is not in the transaction (conformance 3 I18)
-- severity: error
-- needs: journal
-- Before KIP-890 (TxnOffsetCommit up to version 4) a producer has to add the group to its transaction (AddOffsetsToTxn), and receive the
-- response, before it commits offsets for it.
SELECT sent.run, sent.id, sent.client_id, sent.software, sent.software_version, sent.transactional_id, sent.group_id,
       sent.version
FROM producing sent
WHERE sent.api = 'TxnOffsetCommit' AND sent.version <= 4 AND sent.turn > 0 AND NOT EXISTS (
  SELECT 1 FROM producing added
  WHERE added.run = sent.run AND added.era = sent.era AND added.transactional_id = sent.transactional_id
    AND added.turn = sent.turn AND added.api = 'AddOffsetsToTxn' AND added.group_id = sent.group_id
    AND added.outcome = 'answered' AND added.error IS NULL AND added.end_us <= sent.ts_us)
