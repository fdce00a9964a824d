-- title: a bound in a response that the log contradicts
-- severity: error
-- needs: journal
-- Fetch or ListOffsets returned a high watermark or an end beyond the current log end, or a log start above the current one: a log does not
-- lose its end, and its start only increases. Or DeleteRecords returned an offset beyond the end, or a Fetch from beyond it had no error.
WITH asked AS (
  SELECT run, id, coalesce(nullif(each.name, ''), each.topic_id) AS topic, piece.partition_index AS partition, max(piece.timestamp) AS asked_ms
  FROM (SELECT run, id, from_json(request, 'topics ARRAY<STRUCT<name STRING, topic_id STRING, partitions ARRAY<STRUCT<partition_index INT,
          timestamp BIGINT>>>>').topics AS topics FROM calls WHERE api = 'ListOffsets')
  CROSS JOIN LATERAL explode(topics) AS each_rows(each) CROSS JOIN LATERAL explode(each.partitions) AS piece_rows(piece)
  GROUP BY ALL
),
listed_bounds AS (
  SELECT run, era, id, coalesce(nullif(each.name, ''), each.topic_id) AS topic, piece.partition_index AS partition, piece.offset
  FROM (SELECT run, era, id, from_json(response, 'topics ARRAY<STRUCT<name STRING, topic_id STRING, partitions ARRAY<STRUCT<
          partition_index INT, error_code STRING, offset BIGINT>>>>').topics AS topics
        FROM calls WHERE api = 'ListOffsets' AND response IS NOT NULL AND coalesce(size(faults), 0) = 0)
  CROSS JOIN LATERAL explode(topics) AS each_rows(each) CROSS JOIN LATERAL explode(each.partitions) AS piece_rows(piece)
  WHERE piece.error_code = 'NONE'
),
given AS (
  SELECT run, era, id, topic, partition, high_watermark AS top, log_start_offset AS bottom FROM current_fetches WHERE error = 'NONE'
  UNION ALL
  SELECT run, era, id, topic, partition, fetch_offset, CAST(NULL AS BIGINT) FROM current_fetches WHERE error = 'NONE'
  UNION ALL
  SELECT run, era, id, topic, partition, if(asked_ms <> -2, offset, NULL), if(asked_ms = -2, offset, NULL)
  FROM listed_bounds JOIN asked USING (run, id, topic, partition)
  UNION ALL
  SELECT run, era, id, each.name, piece.partition_index, piece.low_watermark, piece.low_watermark
  FROM (SELECT run, era, id, from_json(response, 'topics ARRAY<STRUCT<name STRING, partitions ARRAY<STRUCT<partition_index INT, error_code STRING,
          low_watermark BIGINT>>>>').topics AS topics
        FROM calls WHERE api = 'DeleteRecords' AND response IS NOT NULL AND coalesce(size(faults), 0) = 0)
  CROSS JOIN LATERAL explode(topics) AS each_rows(each) CROSS JOIN LATERAL explode(each.partitions) AS piece_rows(piece)
  WHERE piece.error_code = 'NONE'
)
SELECT given.run, given.id, calls.api, calls.client_id, calls.software, given.topic, given.partition, coalesce(top, bottom) AS offset, log_start, log_end
FROM given JOIN calls ON calls.run = given.run AND calls.id = given.id CROSS JOIN era
JOIN (SELECT topic, partition, max(log_start) AS log_start, max(log_end) AS log_end, max(is_damaged) AS is_damaged FROM partitions GROUP BY topic, partition)
  logs ON logs.topic = given.topic AND logs.partition = given.partition
LEFT JOIN deletions ON deletions.topic = given.topic
WHERE struct(given.run, given.era) >= since AND deleted IS NULL AND NOT is_damaged AND (top > log_end OR bottom > log_start)
GROUP BY ALL
