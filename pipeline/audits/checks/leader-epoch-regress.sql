-- title: a batch of an older leader
-- severity: error
-- Leader epochs only increase along a log. A batch of an older leader after one of a newer leader should have been truncated.
SELECT directory, topic, partition, place AS offset, leader_epoch, previous_leader_epoch, damage, segment, position
FROM ordered
WHERE damage_kind = 'epoch' OR (damage IS NULL AND leader_epoch < previous_leader_epoch AND leader_epoch >= 0)
