-- The requests of classic group members, with the generation that they sent and the last one that they got. A member id from a JoinGroup
-- response counts from that response on.
WITH asked AS (
  SELECT run, era, id, ts_us, end_us, connection, client_host, client_id, software, software_version, api, outcome, error,
         sent.group_id, if(api = 'JoinGroup' AND sent.member_id = '', got.member_id, sent.member_id) AS member_id,
         sent.member_id AS requested_member_id, sent.group_instance_id,
         coalesce(sent.generation_id, sent.generation_id_or_member_epoch) AS generation, got.generation_id AS given_generation
  FROM (SELECT *, from_json(request, 'group_id STRING, member_id STRING, group_instance_id STRING, generation_id INT,
          generation_id_or_member_epoch INT') AS sent, from_json(response, 'generation_id INT, member_id STRING') AS got
        FROM calls WHERE api IN ('JoinGroup', 'SyncGroup', 'Heartbeat', 'OffsetCommit', 'LeaveGroup'))
)
SELECT *, last_value(if(api = 'JoinGroup' AND error IS NULL, given_generation, NULL)) IGNORE NULLS OVER before AS joined_generation,
       last_value(if(api = 'JoinGroup' AND error IS NULL, end_us, NULL)) IGNORE NULLS OVER before AS joined_us,
       lag(error) OVER before_at_all AS previous_error, lag(api) OVER before_at_all AS previous_api
FROM asked
WHERE member_id IS NOT NULL
WINDOW before AS (PARTITION BY run, era, group_id, member_id ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
       before_at_all AS (PARTITION BY run, era, group_id, member_id ORDER BY id)
