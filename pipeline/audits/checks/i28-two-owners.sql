-- title: one partition for two members (conformance 3 I28)
-- severity: error
-- needs: journal
-- The group leader's assignment gives a partition to more than one member of a generation: both will process it.
SELECT run, min(id) AS id, topic, partition, group_id, generation, array_sort(collect_set(member_id)) AS members
FROM assignments
GROUP BY run, era, group_id, generation, topic, partition
HAVING count(DISTINCT member_id) > 1
