-- Every committed offset that a client sent, in a transaction or not, with its response. One row per request and partition.
WITH asked AS (
  SELECT calls.*, coalesce(nullif(data.name, ''), data.topic_id) AS topic_key, piece.partition_index AS partition,
         piece.committed_offset, sent.group_id, sent.member_id, sent.transactional_id, sent.producer_id, sent.producer_epoch,
         coalesce(sent.generation_id_or_member_epoch, sent.generation_id) AS generation
  FROM (SELECT *, from_json(request, 'group_id STRING, member_id STRING, generation_id_or_member_epoch INT, generation_id INT,
          transactional_id STRING, producer_id BIGINT, producer_epoch INT, topics ARRAY<STRUCT<name STRING, topic_id STRING,
          partitions ARRAY<STRUCT<partition_index INT, committed_offset BIGINT>>>>') AS sent
        FROM calls WHERE api IN ('OffsetCommit', 'TxnOffsetCommit')) calls
  CROSS JOIN LATERAL explode(sent.topics) AS data_rows(data) CROSS JOIN LATERAL explode(data.partitions) AS piece_rows(piece)
),
answered AS (
  SELECT run, id, coalesce(nullif(data.name, ''), data.topic_id) AS topic_key, piece.partition_index AS partition,
         piece.error_code
  FROM (SELECT run, id, from_json(response, 'topics ARRAY<STRUCT<name STRING, topic_id STRING, partitions ARRAY<STRUCT<
          partition_index INT, error_code STRING>>>>') AS got
        FROM calls WHERE api IN ('OffsetCommit', 'TxnOffsetCommit') AND response IS NOT NULL)
  CROSS JOIN LATERAL explode(got.topics) AS data_rows(data) CROSS JOIN LATERAL explode(data.partitions) AS piece_rows(piece)
)
SELECT asked.run, era, asked.id, ts_us, end_us, broker, connection, client_host, client_id, software, software_version, api,
       version, outcome, group_id, member_id, generation, transactional_id, producer_id, producer_epoch,
       coalesce(topic_names.topic, asked.topic_key) AS topic, asked.partition, committed_offset,
       if(outcome = 'answered', error_code, NULL) AS error
FROM asked
LEFT JOIN answered ON answered.run = asked.run AND answered.id = asked.id AND answered.topic_key = asked.topic_key
  AND answered.partition = asked.partition
LEFT JOIN topic_names ON topic_names.topic_id = asked.topic_key
