-- title: a marker of a replaced coordinator
-- severity: error
-- The coordinator epoch in a producer's markers decreased: a coordinator wrote a marker after another one had replaced it.
SELECT directory, topic, partition, base_offset AS offset, producer_id, control_type AS marker, coordinator_epoch,
       previous_coordinator_epoch, segment, position
FROM produced
WHERE is_control AND coordinator_epoch < previous_coordinator_epoch
