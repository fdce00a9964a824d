-- title: a commit of a member that knows it is out (I25)
-- severity: error
-- needs: journal
-- It was told that it is no member of this generation any more (ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID), and commits
-- all the same.
SELECT sent.run, sent.id, sent.client_id, sent.software, sent.software_version, sent.group_id, sent.member_id, sent.generation,
       told.id AS told_id, told.error AS told
FROM members sent JOIN members told
  ON told.run = sent.run AND told.era = sent.era AND told.group_id = sent.group_id AND told.member_id = sent.member_id
  AND told.generation = sent.generation AND told.api <> 'JoinGroup'
WHERE sent.api = 'OffsetCommit' AND told.error IN ('ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID', 'FENCED_INSTANCE_ID',
                                                   'FENCED_MEMBER_EPOCH')
  AND sent.ts_us >= told.end_us AND sent.id > told.id
