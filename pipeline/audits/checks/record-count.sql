-- title: a batch whose record count is wrong
-- severity: error
-- The header's count, the range of offsets and the records themselves must agree; only compaction may remove records, and then the header
-- shows it.
SELECT directory, topic, partition, place AS offset, record_count, last_offset - base_offset + 1 AS offsets, damage, segment,
       position
FROM ordered
WHERE damage_kind = 'count' OR (damage IS NULL AND record_count > last_offset - base_offset + 1)
