-- title: overlapping offsets
-- severity: error
-- A batch begins at an offset that an earlier batch contains: one of the two is invisible, or read twice.
SELECT directory, topic, partition, place AS offset, previous_last_offset, damage, segment, position
FROM ordered
WHERE (damage_kind = 'offsets' AND stated_offset >= segment_base
       AND NOT coalesce(next_segment_base > segment_base AND stated_last >= next_segment_base, false))
  OR (damage IS NULL AND base_offset <= previous_last_offset)
