-- title: a member that joins without its member id (conformance 3 I38)
-- severity: error
-- needs: journal
-- A client that has a member id joins with it, until the broker returns that the id is unknown, or it has left. This request has none.
SELECT run, id, client_id, software, software_version, group_id, had_member_id
FROM (
  SELECT *, last_value(if(api = 'JoinGroup' AND error IS NULL, member_id, NULL)) IGNORE NULLS OVER before AS had_member_id,
         last_value(if(api = 'LeaveGroup' OR error IN ('UNKNOWN_MEMBER_ID', 'FENCED_INSTANCE_ID', 'ILLEGAL_GENERATION'), id, NULL)) IGNORE NULLS
           OVER before AS lost_id,
         last_value(if(api = 'JoinGroup' AND error IS NULL, id, NULL)) IGNORE NULLS OVER before AS joined_id
  FROM members
  WINDOW before AS (PARTITION BY run, era, connection, group_id ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
)
WHERE api = 'JoinGroup' AND requested_member_id = '' AND had_member_id IS NOT NULL AND coalesce(lost_id, 0) < joined_id
  AND group_instance_id IS NULL
