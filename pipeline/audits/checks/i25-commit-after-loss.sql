-- title: a commit of a member that knows that it was removed (conformance 3 I25)
-- severity: error
-- needs: journal
-- The member was informed that it is no longer in this generation (ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID), and commits
-- nevertheless.
SELECT sent.run, sent.id, sent.client_id, sent.software, sent.software_version, sent.group_id, sent.member_id, sent.generation,
       refused.id AS refused_id, refused.error AS refusal
FROM members sent JOIN members refused
  ON refused.run = sent.run AND refused.era = sent.era AND refused.group_id = sent.group_id AND refused.member_id = sent.member_id
  AND refused.generation = sent.generation AND refused.api <> 'JoinGroup'
WHERE sent.api = 'OffsetCommit' AND refused.error IN ('ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID', 'FENCED_INSTANCE_ID',
                                                   'FENCED_MEMBER_EPOCH')
  AND sent.ts_us >= refused.end_us AND sent.id > refused.id
