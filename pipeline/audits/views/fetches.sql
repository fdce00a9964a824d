-- The request and the response about a partition, one row per Fetch and partition. In a fetch session (KIP-227) a partition with an
-- unchanged position is not in the request again: `fetch_offset` is the current position.
WITH asked AS (
  SELECT run, era, id, coalesce(nullif(data.topic, ''), data.topic_id) AS topic_key, piece.partition AS partition,
         piece.fetch_offset, piece.current_leader_epoch
  FROM (SELECT *, from_json(request, 'topics ARRAY<STRUCT<topic STRING, topic_id STRING, partitions ARRAY<STRUCT<partition INT,
          fetch_offset BIGINT, current_leader_epoch INT>>>>') AS sent FROM calls WHERE api = 'Fetch')
  CROSS JOIN LATERAL explode(sent.topics) AS data_rows(data) CROSS JOIN LATERAL explode(data.partitions) AS piece_rows(piece)
),
answered AS (
  SELECT run, era, id, coalesce(nullif(data.topic, ''), data.topic_id) AS topic_key, piece.partition_index AS partition,
         piece.error_code AS error, piece.high_watermark, piece.last_stable_offset, piece.log_start_offset,
         piece.aborted_transactions, piece.preferred_read_replica, got.session_id AS answered_session, piece.records
  FROM (SELECT *, from_json(response, 'responses ARRAY<STRUCT<topic STRING, topic_id STRING, partitions ARRAY<STRUCT<
          partition_index INT, error_code STRING, high_watermark BIGINT, last_stable_offset BIGINT, log_start_offset BIGINT, aborted_transactions
          ARRAY<STRUCT<producer_id BIGINT, first_offset BIGINT>>, preferred_read_replica INT, records STRUCT<size_bytes BIGINT, base_offset BIGINT,
          last_offset BIGINT, batches ARRAY<STRUCT<base_offset BIGINT, last_offset BIGINT, producer_id BIGINT, transactional
          BOOLEAN, control BOOLEAN, count BIGINT, size_bytes BIGINT, leader_epoch INT, producer_epoch INT, base_sequence BIGINT, crc
          BIGINT, compression STRING, log_append_time BOOLEAN, base_timestamp_ms BIGINT, max_timestamp_ms BIGINT>>>>>>>, session_id INT') AS got
        FROM calls WHERE api = 'Fetch' AND response IS NOT NULL)
  CROSS JOIN LATERAL explode(got.responses) AS data_rows(data) CROSS JOIN LATERAL explode(data.partitions) AS piece_rows(piece)
),
pairs AS (
  SELECT coalesce(asked.run, answered.run) AS run, coalesce(asked.id, answered.id) AS id,
         coalesce(asked.topic_key, answered.topic_key) AS topic_key, coalesce(asked.partition, answered.partition) AS partition,
         asked.fetch_offset AS asked_offset, current_leader_epoch, error, high_watermark, last_stable_offset,
         log_start_offset, aborted_transactions, preferred_read_replica, answered_session, records
  FROM asked FULL OUTER JOIN answered
    ON asked.run = answered.run AND asked.id = answered.id AND asked.topic_key = answered.topic_key
    AND asked.partition = answered.partition
)
SELECT pairs.run, era, pairs.id, ts_us, end_us, broker, connection, client_host, client_id, software, software_version, version,
       outcome, call_error, isolation, session_id, session_epoch, replica_id, coalesce(topic_names.topic, topic_key) AS topic,
       pairs.partition, asked_offset, current_leader_epoch, pairs.error, high_watermark, last_stable_offset, log_start_offset,
       aborted_transactions, preferred_read_replica, answered_session,
       records.batches AS batches, records.base_offset AS records_from, records.last_offset AS delivered_to,
       greatest(records.base_offset, fetch_offset) AS delivered_from, fetch_offset
FROM (SELECT *, last_value(asked_offset) IGNORE NULLS OVER (PARTITION BY run, topic_key, partition, connection_of.connection
                                                     ORDER BY id) AS fetch_offset, connection_of.*
      FROM pairs JOIN (SELECT run AS call_run, id AS call_id, era, ts_us, end_us, broker, connection, client_host, client_id,
                             software, software_version, version, outcome, error AS call_error,
                             coalesce(get_json_object(request, '$.isolation_level'), '0') = '1' AS isolation,
                             try_cast(get_json_object(request, '$.session_id') AS INT) AS session_id,
                             try_cast(get_json_object(request, '$.session_epoch') AS INT) AS session_epoch,
                             try_cast(get_json_object(request, '$.replica_id') AS INT) AS replica_id
                      FROM calls WHERE api = 'Fetch') connection_of
        ON pairs.run = call_run AND pairs.id = call_id) pairs
LEFT JOIN topic_names ON topic_names.topic_id = topic_key
