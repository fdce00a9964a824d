-- title: transactional offsets without a member (conformance 3 I19)
-- severity: warning
-- needs: journal
-- The group has members, and TxnOffsetCommit (from version 3 on) has no member id: a member that was replaced cannot be fenced (KIP-447).
SELECT DISTINCT run, id, client_id, software, software_version, transactional_id, group_id
FROM commits sent
WHERE api = 'TxnOffsetCommit' AND version >= 3 AND (generation < 0 OR member_id = '') AND EXISTS (
  SELECT 1 FROM members WHERE members.run = sent.run AND members.era = sent.era AND members.group_id = sent.group_id
    AND members.api = 'JoinGroup' AND members.error IS NULL AND members.id < sent.id)
