-- title: the time index is wrong
-- severity: error
-- An entry of `.timeindex` has the highest timestamp of its segment so far, and the offset of the batch that has it. Here no batch has that
-- timestamp, an earlier one has a higher timestamp, the entries decrease, or the highest timestamp of a closed segment is missing (after a
-- clean shutdown all are closed): searches by time skip records, and retention may keep or delete the segment wrongly. In the last segment
-- of a broker that is running or was killed, entries from the first wrong one on may be left over from before a truncation.
WITH entries AS (
  SELECT *, lag(timestamp_ms) OVER (PARTITION BY directory, file ORDER BY entry) AS previous_ms FROM indexes WHERE kind = 'time'
),
wrong AS ( -- an entry has the last offset of its batch, except in the old formats
  SELECT entries.* FROM entries LEFT JOIN ordered
    ON ordered.directory = entries.directory AND ordered.topic = entries.topic AND ordered.partition = entries.partition
    AND ordered.segment_base = entries.segment_base AND ordered.last_offset = entries.offset AND damage IS NULL
    AND max_timestamp_ms = timestamp_ms AND latest_ms <= timestamp_ms
  WHERE (ordered.topic IS NULL AND timestamp_ms >= 0) OR timestamp_ms < -1 OR timestamp_ms < previous_ms
),
running AS (
  SELECT directory, topic, partition, segment_base, base_offset, last_offset, max_timestamp_ms, latest_ms
  FROM ordered JOIN (SELECT DISTINCT directory, topic, partition, segment_base FROM wrong)
    USING (directory, topic, partition, segment_base)
  WHERE damage IS NULL
)
SELECT indexes.directory, indexes.topic, indexes.partition, indexes.offset, indexes.timestamp_ms, latest_ms, indexes.entry,
       indexes.file AS segment
FROM wrong indexes
ASOF LEFT JOIN running ON running.directory = indexes.directory AND running.topic = indexes.topic AND running.partition = indexes.partition
  AND running.segment_base = indexes.segment_base AND indexes.offset >= running.base_offset
ANTI JOIN (SELECT DISTINCT directory, topic, partition, segment_base FROM batches WHERE damage IS NOT NULL) damaged
  ON damaged.directory = indexes.directory AND damaged.topic = indexes.topic AND damaged.partition = indexes.partition
  AND damaged.segment_base = indexes.segment_base
JOIN partitions ON partitions.directory = indexes.directory AND partitions.topic = indexes.topic AND partitions.partition = indexes.partition
LEFT JOIN (SELECT directory, max(is_clean) AS is_clean FROM brokers GROUP BY directory) stops ON stops.directory = indexes.directory
WHERE (indexes.segment_base < last_segment_base OR coalesce(is_clean, false))
  AND (indexes.timestamp_ms < -1 OR (indexes.timestamp_ms >= 0
    AND (base_offset IS NULL OR indexes.offset > running.last_offset OR max_timestamp_ms <> indexes.timestamp_ms OR latest_ms > indexes.timestamp_ms OR indexes.timestamp_ms < previous_ms)))
UNION ALL
SELECT segments.directory, segments.topic, segments.partition, segment_base, last_entry_ms, latest_ms, CAST(NULL AS INT), segment
FROM (SELECT directory, topic, partition, segment_base, max(segment) AS segment, max(max_timestamp_ms) AS latest_ms,
             max(damage) AS damage FROM batches GROUP BY directory, topic, partition, segment_base) segments
JOIN partitions USING (directory, topic, partition)
LEFT JOIN (SELECT directory, topic, partition, segment_base, max(timestamp_ms) AS last_entry_ms FROM indexes WHERE kind = 'time'
           GROUP BY directory, topic, partition, segment_base) entries USING (directory, topic, partition, segment_base)
LEFT JOIN (SELECT directory, max(is_clean) AS is_clean FROM brokers GROUP BY directory) stops USING (directory)
WHERE damage IS NULL AND latest_ms >= 0 AND coalesce(last_entry_ms, -1) < latest_ms
  AND (segment_base < last_segment_base OR (coalesce(is_clean, false) AND topic <> '__cluster_metadata'))
  AND NOT EXISTS (SELECT 1 FROM segment_files WHERE segment_files.directory = segments.directory AND segment_files.topic = segments.topic
                  AND segment_files.partition = segments.partition AND segment_files.segment_base = segments.segment_base
                  AND what = 'missing' AND file LIKE '%.timeindex')
  AND NOT EXISTS (SELECT 1 FROM unreadable WHERE unreadable.directory = segments.directory AND unreadable.topic = segments.topic
                  AND unreadable.partition = segments.partition AND file LIKE '%.timeindex')
