-- title: offsets are missing
-- severity: error
-- The next batch does not begin where the previous one ended, and no compaction explains it: records have been lost. Or the newest segment
-- is empty, and is named after an offset beyond the end.
SELECT ordered.directory, topic, partition, base_offset AS offset, previous_last_offset + 1 AS expected_offset,
       base_offset - previous_last_offset - 1 AS missing_offsets, segment, position
FROM ordered JOIN partitions USING (directory, topic, partition)
WHERE damage IS NULL AND previous_damage IS NULL AND base_offset > previous_last_offset + 1 AND base_offset > cleaned_to
UNION ALL
SELECT directory, topic, partition, last_segment_base, data_end, last_segment_base - data_end, NULL, NULL
FROM partitions
WHERE last_segment_base > data_end AND cleaned_to = 0 AND NOT is_damaged
