-- title: a batch in the wrong segment
-- severity: error
-- A segment is named after the first offset that it may hold, and ends where the next one begins. What lies outside is not
-- found by anybody who asks for it.
SELECT directory, topic, partition, base_offset AS offset, segment_base, next_segment_base, segment, position
FROM ordered
WHERE damage IS NULL
  AND (base_offset < segment_base OR (next_segment_base > segment_base AND last_offset >= next_segment_base))
