-- title: the time index lies
-- severity: error
-- An entry of `.timeindex` says that up to an offset the latest time is so and so. No batch of the segment has that time at or
-- before that offset, or the entries go back: searches by time go wrong, and retention may keep or drop the segment wrongly.
SELECT indexes.directory, indexes.topic, indexes.partition, indexes.offset, indexes.timestamp_ms, indexes.entry,
       indexes.file AS segment
FROM (SELECT *, lag(timestamp_ms) OVER (PARTITION BY directory, file ORDER BY entry) AS previous_ms FROM indexes WHERE kind = 'time') indexes
LEFT JOIN (SELECT directory, topic, partition, segment_base, max_timestamp_ms AS timestamp_ms, min(base_offset) AS base_offset
           FROM batches WHERE damage IS NULL GROUP BY ALL) batches
  USING (directory, topic, partition, segment_base, timestamp_ms)
LEFT ANTI JOIN (SELECT DISTINCT directory, topic, partition, segment_base FROM batches WHERE damage IS NOT NULL) damaged
  USING (directory, topic, partition, segment_base)
WHERE indexes.timestamp_ms >= 0 AND (base_offset IS NULL OR base_offset > indexes.offset OR indexes.timestamp_ms < previous_ms)
