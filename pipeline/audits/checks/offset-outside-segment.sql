-- title: a batch in the wrong segment
-- severity: error
-- A segment is named after the first offset that it may hold, and ends where the next one begins, at most 2147483647 behind: its indexes
-- have relative offsets. Records outside of this range are never found.
SELECT directory, topic, partition, place AS offset, segment_base, next_segment_base, damage, segment, position
FROM ordered
WHERE (damage IS NULL OR damage_kind = 'offsets')
  AND (place < segment_base OR coalesce(last_offset, stated_last) - segment_base > 2147483647
    OR (next_segment_base > segment_base AND coalesce(last_offset, stated_last) >= next_segment_base))
