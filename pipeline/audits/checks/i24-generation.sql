-- title: a generation that is not the member's (conformance 3 I24)
-- severity: error
-- needs: journal
-- A member sends the generation from its last JoinGroup response. This one sent another.
SELECT run, id, client_id, software, software_version, api, group_id, member_id, generation, joined_generation
FROM members
WHERE api IN ('OffsetCommit', 'Heartbeat', 'SyncGroup') AND joined_generation IS NOT NULL AND ts_us >= joined_us
  AND generation <> joined_generation
