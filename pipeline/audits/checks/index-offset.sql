-- title: the offset index is wrong
-- severity: error
-- An entry of `.index` maps an offset to a position in the segment. There is no batch at this position, or it begins after that offset, or
-- the entries are out of order: consumers get nothing, or the wrong records. If the file is deleted, the broker rebuilds it. In the last
-- segment of a broker that is running or was killed, entries from the first wrong one on may be left over from before a truncation; the
-- broker knows its log end, and rebuilds the index when it starts.
SELECT indexes.directory, indexes.topic, indexes.partition, indexes.offset, indexes.position, batches.base_offset,
       indexes.entry, indexes.file AS segment
FROM (SELECT *, lag(offset) OVER (PARTITION BY directory, file ORDER BY entry) AS previous_offset FROM indexes WHERE kind = 'offset') indexes
LEFT JOIN batches USING (directory, topic, partition, segment_base, position)
LEFT JOIN (SELECT directory, topic, partition, segment_base, min(position) AS damaged_from
           FROM batches WHERE damage_kind <> 'crc' GROUP BY ALL) USING (directory, topic, partition, segment_base)
JOIN partitions USING (directory, topic, partition)
LEFT JOIN (SELECT directory, max(is_clean) AS is_clean FROM brokers GROUP BY directory) stops USING (directory)
WHERE (damaged_from IS NULL OR indexes.position < damaged_from)
  AND (batches.topic IS NULL OR base_offset > indexes.offset OR indexes.offset <= previous_offset)
  AND (segment_base < last_segment_base OR coalesce(is_clean, false))
