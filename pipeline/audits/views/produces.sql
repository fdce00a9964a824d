-- Every set of records that a client sent: the request and its response. One row per request and partition. `stamped_offset`: its offset in
-- the log; only valid if it was appended.
WITH asked AS (
  SELECT calls.* EXCEPT (request, response), sent.transactional_id, sent.acks,
         nullif(data.name, '') AS name, data.topic_id, piece.index AS partition, piece.records AS records
  FROM (SELECT *, from_json(request, 'transactional_id STRING, acks INT, topic_data ARRAY<STRUCT<name STRING, topic_id STRING,
          partition_data ARRAY<STRUCT<index INT, records STRUCT<size_bytes BIGINT, count BIGINT, base_offset BIGINT, last_offset
          BIGINT, producer_id BIGINT, producer_epoch INT, base_sequence BIGINT, transactional BOOLEAN, control BOOLEAN, batch_count
          INT, batches ARRAY<STRUCT<base_offset BIGINT, last_offset BIGINT, count BIGINT, log_append_time BOOLEAN,
          base_timestamp_ms BIGINT, max_timestamp_ms BIGINT, crc BIGINT>>>>>>>') AS sent
        FROM calls WHERE api = 'Produce') calls
  CROSS JOIN LATERAL explode(sent.topic_data) AS data_rows(data) CROSS JOIN LATERAL explode(data.partition_data) AS piece_rows(piece)
),
answered AS (
  SELECT run, id, coalesce(nullif(answer.name, ''), answer.topic_id) AS topic_key, piece.index AS partition,
         piece.error_code AS partition_error, piece.base_offset AS acked_offset, piece.current_leader.leader_id AS hinted_leader
  FROM (SELECT run, id, from_json(response, 'responses ARRAY<STRUCT<name STRING, topic_id STRING, partition_responses
          ARRAY<STRUCT<index INT, error_code STRING, base_offset BIGINT, current_leader STRUCT<leader_id INT>>>>>') AS got
        FROM calls WHERE api = 'Produce' AND response IS NOT NULL)
  CROSS JOIN LATERAL explode(got.responses) AS answer_rows(answer) CROSS JOIN LATERAL explode(answer.partition_responses) AS piece_rows(piece)
)
SELECT asked.run, era, asked.id, ts_us, end_us, broker, connection, client_host, client_id, software, software_version, version,
       outcome, faults, transactional_id, acks, coalesce(asked.name, topic_names.topic, asked.topic_id) AS topic, asked.topic_id,
       asked.partition, records.count, records.producer_id, records.producer_epoch, records.base_sequence,
       records.transactional, records.control, records.base_offset AS stamped_offset, records.batch_count,
       get(records.batches, 0).crc AS crc, get(records.batches, 0).log_append_time AS log_append_time,
       get(records.batches, 0).max_timestamp_ms AS max_timestamp_ms, get(records.batches, 0).last_offset AS stamped_last_offset,
       if(outcome = 'answered', partition_error, NULL) AS error, acked_offset, hinted_leader, records IS NULL AS without_records
FROM asked
LEFT JOIN answered ON answered.run = asked.run AND answered.id = asked.id AND answered.partition = asked.partition
  AND answered.topic_key = coalesce(asked.name, asked.topic_id)
LEFT JOIN topic_names ON topic_names.topic_id = asked.topic_id
