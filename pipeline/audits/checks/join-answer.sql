-- title: an invalid response to JoinGroup
-- severity: error
-- needs: journal
-- A group's generation only increases for each of its members, and for all while no member can have left; a generation has one leader, and a member that sends its id keeps it. The
-- protocol is one that the member offered; the leader gets all members, each once, and the others get none.
WITH joined AS (
  SELECT run, era, id, ts_us, end_us, client_id, software, sent.group_id, sent.member_id AS requested_id, got.member_id, got.leader, got.generation_id AS generation,
         got.protocol_name, sent.protocols, got.members, coalesce(got.skip_assignment, false) AS skip_assignment
  FROM (SELECT *, from_json(request, 'group_id STRING, member_id STRING, protocols ARRAY<STRUCT<name STRING>>') AS sent,
               from_json(response, 'member_id STRING, leader STRING, generation_id INT, protocol_name STRING, skip_assignment BOOLEAN,
               members ARRAY<STRUCT<member_id STRING>>') AS got
        FROM calls WHERE api = 'JoinGroup' AND error IS NULL AND response IS NOT NULL AND coalesce(size(faults), 0) = 0)
)
SELECT run, id, client_id, software, group_id, requested_id, member_id, leader, generation, highest, previous_leader
FROM (SELECT *, max(generation) OVER own AS highest, max(end_us) OVER own AS answered_us,
             max(generation) OVER whole AS group_highest, max(end_us) OVER whole AS group_answered_us, lag(leader) OVER before AS previous_leader,
             lag(generation) OVER before AS previous_generation, lag(id) OVER before AS previous_id
      FROM joined
      WINDOW before AS (PARTITION BY run, era, group_id ORDER BY id),
             whole AS (PARTITION BY run, era, group_id ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
             own AS (PARTITION BY run, era, group_id, member_id ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) answers
WHERE (size(protocols) > 0 AND protocol_name IS NOT NULL AND size(filter(protocols, each -> each.name = protocol_name)) = 0)
  OR (leader <> member_id AND size(members) > 0) OR size(array_distinct(transform(members, each -> each.member_id))) < size(members)
  OR (leader = member_id AND members IS NOT NULL AND NOT skip_assignment AND size(filter(members, each -> each.member_id = member_id)) = 0)
  OR (generation < highest AND answered_us < ts_us) OR (requested_id <> '' AND requested_id <> member_id)
  OR (generation < group_highest AND ts_us - group_answered_us BETWEEN 0 AND 5000000 AND NOT EXISTS (
      SELECT 1 FROM calls gone WHERE gone.run = answers.run AND gone.api IN ('LeaveGroup', 'DeleteGroups')
        AND gone.id > answers.previous_id AND gone.id < answers.id))
  OR (leader <> previous_leader AND generation = previous_generation AND NOT EXISTS (
      SELECT 1 FROM calls gone WHERE gone.run = answers.run AND gone.api IN ('LeaveGroup', 'DeleteGroups')
        AND gone.id > answers.previous_id AND gone.id < answers.id))
