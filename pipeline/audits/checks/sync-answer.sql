-- title: an assignment that the group's leader did not make
-- severity: error
-- needs: journal
-- SyncGroup gives each member what the leader of its generation sent for it. A member got something else: partitions are read by two
-- members, or by none.
WITH synced AS (
  SELECT run, era, id, client_id, software, sent.group_id, sent.generation_id AS generation, sent.member_id, sent.assignments,
         from_json(response, 'assignment STRING').assignment AS given
  FROM (SELECT *, from_json(request, 'group_id STRING, generation_id INT, member_id STRING, assignments ARRAY<STRUCT<member_id STRING, assignment
          STRING>>') AS sent
        FROM calls WHERE api = 'SyncGroup' AND error IS NULL AND response IS NOT NULL AND coalesce(size(faults), 0) = 0)
),
made AS (
  SELECT run, era, group_id, generation, each.member_id, max(each.assignment) AS assignment
  FROM synced CROSS JOIN LATERAL explode(assignments) AS each_rows(each) GROUP BY ALL
)
SELECT synced.run, synced.id, synced.client_id, synced.software, synced.group_id, synced.generation, synced.member_id
FROM synced JOIN made ON made.run = synced.run AND made.era = synced.era AND made.group_id = synced.group_id
  AND made.generation = synced.generation AND made.member_id = synced.member_id
WHERE synced.given <> made.assignment
