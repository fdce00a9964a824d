-- title: a Produce response that contradicts itself
-- severity: error
-- needs: journal
-- An accepted batch has an offset that is not before the log start, and no error message; a rejected one has no offset; a log append time
-- is that of the batch; each requested partition has one result, and no other has one. The producer draws wrong conclusions about its
-- records.
WITH judged AS (
  SELECT run, id, request, response FROM calls
  WHERE api = 'Produce' AND outcome = 'answered' AND response IS NOT NULL AND coalesce(size(faults), 0) = 0
    AND coalesce(get_json_object(request, '$.acks'), '-1') <> '0'
),
answered AS (
  SELECT run, id, coalesce(nullif(answer.name, ''), answer.topic_id) AS topic_key, piece.index AS partition, piece.error_code AS error,
         piece.base_offset, piece.log_start_offset, piece.log_append_time_ms, size(coalesce(piece.record_errors, array())) > 0 OR coalesce(piece.error_message, '') <> '' AS has_errors
  FROM (SELECT run, id, from_json(response, 'responses ARRAY<STRUCT<name STRING, topic_id STRING, partition_responses
          ARRAY<STRUCT<index INT, error_code STRING, base_offset BIGINT, log_start_offset BIGINT, log_append_time_ms BIGINT, record_errors ARRAY<STRUCT<batch_index INT>>, error_message STRING>>>>') AS got
        FROM judged)
  CROSS JOIN LATERAL explode(got.responses) AS answer_rows(answer) CROSS JOIN LATERAL explode(answer.partition_responses) AS piece_rows(piece)
),
asked AS (
  SELECT run, id, coalesce(nullif(data.name, ''), data.topic_id) AS topic_key, piece.index AS partition
  FROM (SELECT run, id, from_json(request, 'topic_data ARRAY<STRUCT<name STRING, topic_id STRING, partition_data
          ARRAY<STRUCT<index INT>>>>') AS sent
        FROM judged)
  CROSS JOIN LATERAL explode(sent.topic_data) AS data_rows(data) CROSS JOIN LATERAL explode(data.partition_data) AS piece_rows(piece)
)
SELECT run, id, topic_key AS topic, min(partition) AS partition
FROM (
  SELECT run, id, topic_key, partition FROM answered
  WHERE CASE error WHEN 'NONE' THEN base_offset < 0 OR log_start_offset > base_offset OR has_errors
                   WHEN 'DUPLICATE_SEQUENCE_NUMBER' THEN false ELSE base_offset >= 0 END
  UNION ALL
  SELECT answered.run, answered.id, topic_key, answered.partition
  FROM answered LEFT JOIN topic_names ON topic_names.topic_id = topic_key
  JOIN current_produces sent ON sent.run = answered.run AND sent.id = answered.id AND sent.partition = answered.partition
    AND sent.topic = coalesce(topic_names.topic, topic_key)
  JOIN batches ON batches.topic = sent.topic AND batches.partition = answered.partition AND batches.base_offset = answered.base_offset AND damage IS NULL
  WHERE answered.error = 'NONE' AND log_append_time_ms <> batches.max_timestamp_ms AND (log_append_time_ms >= 0 OR batches.timestampType = 1)
  UNION ALL
  SELECT run, id, topic_key, partition
  FROM (SELECT *, 1 AS is_asked, 0 AS is_answered FROM asked
        UNION ALL SELECT run, id, topic_key, partition, 0, 1 FROM answered)
  GROUP BY run, id, topic_key, partition HAVING max(is_asked) = 0 OR sum(is_answered) <> 1
)
GROUP BY run, id, topic_key
