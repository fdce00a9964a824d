-- title: offsets that are taken
-- severity: error
-- A batch begins at an offset that an earlier batch has: one of the two is invisible, or read twice.
SELECT directory, topic, partition, base_offset AS offset, previous_last_offset, segment, position
FROM ordered
WHERE damage IS NULL AND base_offset <= previous_last_offset
