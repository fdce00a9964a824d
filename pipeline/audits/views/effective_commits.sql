-- The committed offsets that took effect, and when: those of an OffsetCommit with its response; those of a TxnOffsetCommit with the EndTxn
-- that committed its transaction, and never if it was aborted or its end is not in the journal.
SELECT run, era, id, end_us, client_id, software, software_version, group_id, member_id, generation, topic, partition, committed_offset
FROM commits WHERE api = 'OffsetCommit' AND error = 'NONE'
UNION ALL
SELECT sent.run, sent.era, sent.id, ended.end_us, sent.client_id, sent.software, sent.software_version, sent.group_id,
       sent.member_id, sent.generation, sent.topic, sent.partition, sent.committed_offset
FROM commits sent JOIN producing begun ON begun.run = sent.run AND begun.id = sent.id
JOIN producing ended ON ended.run = begun.run AND ended.era = begun.era AND ended.transactional_id = begun.transactional_id
  AND ended.turn = begun.turn
WHERE sent.api = 'TxnOffsetCommit' AND sent.error = 'NONE' AND ended.api = 'EndTxn' AND ended.committed AND ended.error IS NULL
  AND ended.outcome = 'answered'
