-- Which member of a classic group of consumers owns which partition in which generation, as its leader sent it with SyncGroup.
SELECT DISTINCT run, era, id, sent.group_id, sent.generation_id AS generation, each.member_id, owned.topic, owned.partition
FROM (SELECT run, era, id, from_json(request, 'group_id STRING, generation_id INT, protocol_type STRING, assignments ARRAY<STRUCT<
        member_id STRING, assignment STRING>>') AS sent
      FROM calls WHERE api = 'SyncGroup' AND outcome = 'answered' AND error IS NULL)
CROSS JOIN LATERAL explode(sent.assignments) AS each_rows(each) CROSS JOIN LATERAL explode(owned_partitions(each.assignment)) AS owned_rows(owned)
WHERE coalesce(sent.protocol_type, 'consumer') = 'consumer'
