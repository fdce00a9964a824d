-- title: a snapshot that lost state of a share partition
-- severity: error
-- A snapshot merges the updates since the last one: at each offset the highest delivery count wins, then the highest state
-- (`PersisterStateBatchCombiner`). Here an offset has less than in earlier records, or nothing: it is redelivered, or more often than the
-- limit allows.
WITH based AS (SELECT share_states.*, if(is_snapshot, offset, previous_snapshot) AS base FROM share_states WHERE NOT is_tombstone),
known AS (
  SELECT later.partition, later.offset, later.group_id, later.topic_id, later.shared_partition, later.start_offset, 0 AS is_kept, batch
  FROM based later
  JOIN based earlier ON earlier.group_id = later.group_id AND earlier.topic_id = later.topic_id
    AND earlier.shared_partition = later.shared_partition AND earlier.run = later.run AND earlier.base = later.previous_snapshot
    AND earlier.offset < later.offset
  CROSS JOIN LATERAL explode(earlier.batches) AS batch_rows(batch)
  WHERE later.is_snapshot
  UNION ALL
  SELECT partition, offset, group_id, topic_id, shared_partition, start_offset, 1 AS is_kept, batch
  FROM based CROSS JOIN LATERAL explode(batches) AS batch_rows(batch)
  WHERE is_snapshot AND previous_snapshot IS NOT NULL
),
ranges AS (
  SELECT partition, offset, group_id, topic_id, shared_partition, is_kept, greatest(batch.first_offset, start_offset) AS first_offset,
         batch.last_offset AS last_offset, batch.delivery_count * 10 + batch.delivery_state AS value
  FROM known WHERE batch.last_offset >= start_offset
),
points AS (
  SELECT partition, offset, first_offset AS point FROM ranges UNION SELECT partition, offset, last_offset + 1 FROM ranges
)
SELECT '__share_group_state' AS topic, partition, offset, group_id, topic_id, shared_partition, min(point) AS first_lost,
       count(*) AS places
FROM (
  SELECT ranges.partition, ranges.offset, group_id, topic_id, shared_partition, point,
         max(if(is_kept = 0, value, NULL)) AS before, max(if(is_kept = 1, value, NULL)) AS kept
  FROM ranges JOIN points ON points.partition = ranges.partition AND points.offset = ranges.offset
    AND point BETWEEN first_offset AND last_offset
  GROUP BY ALL
)
WHERE before > coalesce(kept, -1)
GROUP BY ALL
