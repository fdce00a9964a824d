-- title: an invalid answer to ListOffsets
-- severity: error
-- needs: journal
-- The end of a log is not before what was acknowledged, or before an end that was returned earlier; a search by time gives no earlier
-- time than was asked for.
WITH answers AS (
  SELECT calls.*, coalesce(nullif(each.name, ''), each.topic_id) AS topic, piece.partition_index AS partition, piece.offset,
         piece.timestamp AS time_ms, piece.error_code AS partition_error
  FROM (SELECT run, era, id, ts_us, end_us, client_id, software, broker, coalesce(get_json_object(request, '$.isolation_level'), '0') = '1' AS isolation,
               from_json(response, 'topics ARRAY<STRUCT<name STRING, topic_id STRING, partitions ARRAY<STRUCT<partition_index
               INT, offset BIGINT, timestamp BIGINT, error_code STRING>>>>') AS got
        FROM calls WHERE api = 'ListOffsets' AND response IS NOT NULL AND size(coalesce(faults, array())) = 0) calls
  LATERAL VIEW explode(got.topics) AS each LATERAL VIEW explode(each.partitions) AS piece
),
asked AS (
  SELECT run, id, coalesce(nullif(each.name, ''), each.topic_id) AS topic, piece.partition_index AS partition, piece.timestamp AS asked_ms
  FROM (SELECT run, id, from_json(request, 'topics ARRAY<STRUCT<name STRING, topic_id STRING, partitions ARRAY<STRUCT<partition_index INT,
          timestamp BIGINT>>>>') AS sent FROM calls WHERE api = 'ListOffsets')
  LATERAL VIEW explode(sent.topics) AS each LATERAL VIEW explode(each.partitions) AS piece
),
both AS (
  SELECT answers.* EXCEPT (got), asked_ms, deletions.deleted,
         max(if(asked_ms = -1 AND NOT isolation AND partition_error = 'NONE', offset, NULL)) OVER before AS highest,
         max(end_us) OVER before AS answered_us
  FROM answers LEFT JOIN asked USING (run, id, topic, partition) LEFT JOIN deletions USING (topic)
  WINDOW before AS (PARTITION BY run, era, topic, partition ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
),
acked AS (SELECT run, era, topic, partition, end_us, acked_offset + count AS acked_to FROM current_produces WHERE error = 'NONE' AND acks = -1)
SELECT both.run, both.id, both.topic, both.partition, both.offset, both.client_id, both.software, asked_ms, time_ms, highest,
       max(acked_to) AS acknowledged_to
FROM both LEFT JOIN acked ON acked.run = both.run AND acked.era = both.era AND acked.topic = both.topic
  AND acked.partition = both.partition AND acked.end_us < both.ts_us
WHERE partition_error = 'NONE'
GROUP BY both.run, both.id, both.topic, both.partition, both.offset, both.client_id, both.software, asked_ms, time_ms, highest, isolation,
         answered_us, ts_us, deleted
HAVING (asked_ms >= 0 AND time_ms >= 0 AND time_ms < asked_ms)
  OR (asked_ms IN (-1, -2) AND time_ms <> -1)
  OR (asked_ms = -1 AND NOT isolation AND (offset < max(acked_to) OR (offset < highest AND answered_us < ts_us AND deleted IS NULL)))
