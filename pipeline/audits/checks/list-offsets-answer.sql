-- title: an invalid response to ListOffsets
-- severity: error
-- needs: journal
-- A log end is not below what was acknowledged, or below an end that was returned earlier; a search by time returns a timestamp that is not
-- earlier than requested, belongs to the record's batch, and is in the first such batch.
WITH answers AS (
  SELECT calls.*, coalesce(nullif(each.name, ''), each.topic_id) AS topic, piece.partition_index AS partition, piece.offset,
         piece.timestamp AS time_ms, piece.leader_epoch, piece.error_code AS partition_error
  FROM (SELECT run, era, id, ts_us, end_us, client_id, software, broker, coalesce(get_json_object(request, '$.isolation_level'), '0') = '1' AS isolation,
               from_json(response, 'topics ARRAY<STRUCT<name STRING, topic_id STRING, partitions ARRAY<STRUCT<partition_index
               INT, offset BIGINT, timestamp BIGINT, leader_epoch INT, error_code STRING>>>>') AS got
        FROM calls WHERE api = 'ListOffsets' AND response IS NOT NULL AND coalesce(size(faults), 0) = 0) calls
  CROSS JOIN LATERAL explode(got.topics) AS each_rows(each) CROSS JOIN LATERAL explode(each.partitions) AS piece_rows(piece)
),
asked AS (
  SELECT run, id, coalesce(nullif(each.name, ''), each.topic_id) AS topic, piece.partition_index AS partition, piece.timestamp AS asked_ms
  FROM (SELECT run, id, from_json(request, 'topics ARRAY<STRUCT<name STRING, topic_id STRING, partitions ARRAY<STRUCT<partition_index INT,
          timestamp BIGINT>>>>') AS sent FROM calls WHERE api = 'ListOffsets')
  CROSS JOIN LATERAL explode(sent.topics) AS each_rows(each) CROSS JOIN LATERAL explode(each.partitions) AS piece_rows(piece)
),
pairs AS (
  SELECT answers.* EXCEPT (got), asked_ms, deletions.deleted,
         max(if(asked_ms = -1 AND NOT isolation AND partition_error = 'NONE', offset, NULL)) OVER before AS highest,
         max(end_us) OVER before AS answered_us
  FROM answers LEFT JOIN asked USING (run, id, topic, partition) LEFT JOIN deletions USING (topic)
  WINDOW before AS (PARTITION BY run, era, topic, partition ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
),
acked AS (SELECT run, era, topic, partition, end_us, acked_offset + count AS acked_to FROM current_produces WHERE error = 'NONE' AND acks = -1),
searched AS (
  SELECT pairs.* FROM pairs CROSS JOIN era
  WHERE partition_error = 'NONE' AND deleted IS NULL AND struct(pairs.run, pairs.era) >= since AND (asked_ms >= 0 OR asked_ms = -3)
),
misplaced AS (
  SELECT searched.run, searched.id, searched.topic, searched.partition
  FROM searched JOIN batches ON batches.topic = searched.topic AND batches.partition = searched.partition AND damage IS NULL
    AND searched.offset BETWEEN batches.base_offset AND batches.last_offset
  WHERE (time_ms > batches.max_timestamp_ms OR (time_ms <> batches.max_timestamp_ms AND batches.record_count = 1)
    OR (time_ms <> batches.base_timestamp_ms AND batches.timestampType = 0 AND searched.offset = batches.base_offset
        AND batches.record_count = batches.last_offset - batches.base_offset + 1)
    OR (searched.leader_epoch >= 0 AND searched.leader_epoch <> batches.leader_epoch))
  UNION ALL
  SELECT searched.run, searched.id, searched.topic, searched.partition
  FROM searched JOIN batches ON batches.topic = searched.topic AND batches.partition = searched.partition AND damage IS NULL AND NOT is_control
    AND batches.last_offset < searched.offset
  JOIN (SELECT topic, partition, max(greatest(log_start, cleaned_to)) AS judged_from FROM partitions GROUP BY ALL) logs
    ON logs.topic = searched.topic AND logs.partition = searched.partition
  WHERE batches.base_offset >= judged_from AND asked_ms >= 0 AND batches.max_timestamp_ms >= asked_ms
  UNION ALL
  SELECT searched.run, searched.id, searched.topic, searched.partition
  FROM searched JOIN current_produces sent ON sent.run = searched.run AND sent.era = searched.era AND sent.topic = searched.topic
    AND sent.partition = searched.partition AND sent.error = 'NONE' AND sent.acks = -1 AND sent.end_us < searched.ts_us AND sent.count > 0
  JOIN batches ON batches.topic = sent.topic AND batches.partition = sent.partition AND damage IS NULL AND batches.base_offset = sent.acked_offset
  WHERE asked_ms >= 0 AND batches.max_timestamp_ms >= asked_ms AND NOT isolation AND searched.offset < 0
)
SELECT pairs.run, pairs.id, pairs.topic, pairs.partition, pairs.offset, pairs.client_id, pairs.software, asked_ms, time_ms, highest,
       max(acked_to) AS acknowledged_to
FROM pairs LEFT JOIN acked ON acked.run = pairs.run AND acked.era = pairs.era AND acked.topic = pairs.topic
  AND acked.partition = pairs.partition AND acked.end_us < pairs.ts_us
LEFT JOIN misplaced ON misplaced.run = pairs.run AND misplaced.id = pairs.id AND misplaced.topic = pairs.topic
  AND misplaced.partition = pairs.partition
WHERE partition_error = 'NONE'
GROUP BY pairs.run, pairs.id, pairs.topic, pairs.partition, pairs.offset, pairs.client_id, pairs.software, asked_ms, time_ms, highest, isolation,
         answered_us, ts_us, deleted
HAVING max(misplaced.id) IS NOT NULL OR (asked_ms >= 0 AND time_ms >= 0 AND time_ms < asked_ms)
  OR (asked_ms IN (-1, -2) AND time_ms <> -1)
  OR (asked_ms = -1 AND NOT isolation AND (offset < max(acked_to) OR (offset < highest AND answered_us < ts_us AND deleted IS NULL)))
