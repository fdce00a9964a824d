-- title: offsets in a transaction without an end
-- severity: warning
-- needs: journal
-- A producer added committed offsets to its transaction (TxnOffsetCommit) and neither ended it nor began another one. The offsets have no
-- effect, and while the transaction is open members that request them have to wait (UNSTABLE_OFFSET_COMMIT).
SELECT run, id, topic, partition, committed_offset AS offset, group_id, client_id, software, transactional_id, producer_id,
       producer_epoch
FROM commits sent
WHERE api = 'TxnOffsetCommit' AND error = 'NONE' AND NOT EXISTS (
  SELECT 1 FROM producing ended
  WHERE ended.run = sent.run AND ended.era = sent.era AND ended.transactional_id = sent.transactional_id AND ended.id > sent.id
    AND ended.api IN ('EndTxn', 'InitProducerId'))
