-- title: a marker of a replaced coordinator
-- severity: error
-- The coordinator's epoch in a producer's markers went back: a coordinator wrote after another one had taken its place.
SELECT directory, topic, partition, base_offset AS offset, producer_id, control_type AS marker, coordinator_epoch,
       previous_coordinator_epoch, segment, position
FROM produced
WHERE is_control AND coordinator_epoch < previous_coordinator_epoch
