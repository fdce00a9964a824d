-- title: a bound that other requests contradict
-- severity: error
-- needs: journal
-- A high watermark or log end is not beyond records that were sent only afterwards, and the log start in responses to Fetch, ListOffsets,
-- Produce and DeleteRecords of one broker never decreases. Retries of a batch are one batch, sent at its first attempt.
WITH sent AS (
  SELECT run, era, topic, partition, acked_offset, first_us
  FROM (SELECT *, min(ts_us) OVER (PARTITION BY run, era, topic, partition, producer_id, producer_epoch, base_sequence,
                                   if(producer_id >= 0, 0, crc)) AS first_us FROM current_produces)
  WHERE error = 'NONE' AND count > 0 AND acked_offset >= 0 AND NOT without_records AND (producer_id >= 0 OR crc IS NOT NULL)
),
asked AS (
  SELECT run, id, coalesce(topic_names.topic, name, key) AS topic, partition, asked_ms
  FROM (SELECT run, id, nullif(each.name, '') AS name, each.topic_id AS key, piece.partition_index AS partition, max(piece.timestamp) AS asked_ms
        FROM (SELECT run, id, from_json(request, 'topics ARRAY<STRUCT<name STRING, topic_id STRING, partitions ARRAY<STRUCT<partition_index INT,
                timestamp BIGINT>>>>').topics AS topics FROM calls WHERE api = 'ListOffsets')
        CROSS JOIN LATERAL explode(topics) AS each_rows(each) CROSS JOIN LATERAL explode(each.partitions) AS piece_rows(piece) GROUP BY ALL)
  LEFT JOIN topic_names ON topic_names.topic_id = key
),
answered AS (
  SELECT got.run, got.era, got.id, got.broker, got.ts_us, got.end_us, got.api, coalesce(topic_names.topic, nullif(got.name, ''), got.key) AS topic, got.partition, got.value
  FROM (SELECT run, era, id, broker, ts_us, end_us, api, each.name, each.topic_id AS key, piece.partition_index AS partition,
               coalesce(piece.offset, piece.low_watermark) AS value
        FROM (SELECT *, from_json(response, 'topics ARRAY<STRUCT<name STRING, topic_id STRING, partitions ARRAY<STRUCT<partition_index INT, error_code STRING,
                offset BIGINT, low_watermark BIGINT>>>>').topics AS topics
              FROM calls WHERE api IN ('ListOffsets', 'DeleteRecords') AND response IS NOT NULL AND coalesce(size(faults), 0) = 0)
        CROSS JOIN LATERAL explode(topics) AS each_rows(each) CROSS JOIN LATERAL explode(each.partitions) AS piece_rows(piece)
        WHERE piece.error_code = 'NONE'
        UNION ALL
        SELECT run, era, id, broker, ts_us, end_us, api, each.name, each.topic_id, piece.index, piece.log_start_offset
        FROM (SELECT *, from_json(response, 'responses ARRAY<STRUCT<name STRING, topic_id STRING, partition_responses ARRAY<STRUCT<index INT,
                error_code STRING, log_start_offset BIGINT>>>>').responses AS topics
              FROM calls WHERE api = 'Produce' AND response IS NOT NULL AND coalesce(size(faults), 0) = 0)
        CROSS JOIN LATERAL explode(topics) AS each_rows(each) CROSS JOIN LATERAL explode(each.partition_responses) AS piece_rows(piece)
        WHERE piece.error_code = 'NONE') got
  LEFT JOIN topic_names ON topic_names.topic_id = got.key
),
bounds AS (
  SELECT run, era, id, broker, ts_us, end_us, topic, partition, high_watermark AS top, log_start_offset AS bottom, log_start_offset AS reached
  FROM current_fetches WHERE error = 'NONE' AND high_watermark >= 0
  UNION ALL
  SELECT run, era, id, broker, ts_us, end_us, topic, partition, if(asked_ms = -1, value, NULL), if(asked_ms = -2, value, NULL), if(asked_ms = -2, value, NULL)
  FROM answered JOIN asked USING (run, id, topic, partition) CROSS JOIN era LEFT JOIN deletions USING (topic)
  WHERE api = 'ListOffsets' AND struct(run, answered.era) >= since AND (deleted IS NULL OR struct(run, id) > deleted)
  UNION ALL
  SELECT run, era, id, broker, ts_us, end_us, topic, partition, CAST(NULL AS BIGINT), if(api = 'Produce', value, NULL), value
  FROM answered CROSS JOIN era LEFT JOIN deletions USING (topic)
  WHERE api <> 'ListOffsets' AND value >= 0 AND struct(run, answered.era) >= since AND (deleted IS NULL OR struct(run, id) > deleted)
),
timeline AS (
  SELECT run, era, id, topic, partition, top, end_us AS time_us, CAST(NULL AS BIGINT) AS sent_offset FROM bounds WHERE top IS NOT NULL
  UNION ALL
  SELECT run, era, CAST(NULL AS BIGINT), topic, partition, CAST(NULL AS BIGINT), first_us - 1, acked_offset FROM sent
),
found AS (
  SELECT run, id, topic, partition, top AS offset, 'beyond what was sent afterwards' AS what
  FROM (SELECT *, min(sent_offset) OVER (PARTITION BY run, era, topic, partition ORDER BY time_us DESC ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
          AS next_offset FROM timeline)
  WHERE top > next_offset
  UNION ALL
  SELECT run, id, topic, partition, bottom, 'a start before that of an earlier answer'
  FROM (SELECT *, max(reached) OVER before AS highest, max(end_us) OVER before AS answered_us FROM bounds
        WINDOW before AS (PARTITION BY run, era, broker, topic, partition ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
  WHERE bottom < highest AND answered_us < ts_us
  UNION ALL
  SELECT bounds.run, bounds.id, bounds.topic, bounds.partition, bottom, 'a start that the log has not reached'
  FROM bounds JOIN (SELECT topic, partition, max(log_start) AS log_start FROM partitions GROUP BY ALL HAVING NOT max(is_damaged)) logs
    ON logs.topic = bounds.topic AND logs.partition = bounds.partition
  JOIN calls ON calls.run = bounds.run AND calls.id = bounds.id AND calls.api = 'Produce' LEFT JOIN deletions ON deletions.topic = bounds.topic
  WHERE bottom > logs.log_start AND deleted IS NULL
)
SELECT found.run, found.id, calls.api, calls.client_id, calls.software, found.topic, found.partition, found.offset, what
FROM found JOIN calls ON calls.run = found.run AND calls.id = found.id
