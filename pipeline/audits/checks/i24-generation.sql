-- title: a generation that is not the member's (conformance 3 I24)
-- severity: error
-- needs: journal
-- A member asks with the generation that its last JoinGroup gave it. This one has another.
SELECT run, id, client_id, software, software_version, api, group_id, member_id, generation, joined_generation
FROM members
WHERE api IN ('OffsetCommit', 'Heartbeat', 'SyncGroup') AND joined_generation IS NOT NULL AND ts_us >= joined_us
  AND generation <> joined_generation
