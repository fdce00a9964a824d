-- title: a transaction or producer that the logs do not have
-- severity: error
-- needs: journal
-- DescribeTransactions or ListTransactions returned a producer id and epoch, a timeout, a start time, a state or a partition that the
-- coordinator never wrote for this transactional id; or DescribeProducers a producer, a sequence or a transaction start that the partition
-- never had; or InitProducerId an id and epoch that are in no record. Checked if the logs have all their records.
WITH sound AS (
  SELECT run, id, api, client_id, software, ts_us, response FROM calls CROSS JOIN era
  WHERE api IN ('DescribeTransactions', 'ListTransactions', 'DescribeProducers') AND response IS NOT NULL AND coalesce(size(faults), 0) = 0
    AND struct(run, calls.era) >= since
),
states AS (
  SELECT run, id, each.*
  FROM (SELECT run, id, from_json(response, 'transaction_states ARRAY<STRUCT<error_code STRING, transactional_id STRING, transaction_state STRING, producer_id
          BIGINT, producer_epoch INT, transaction_timeout_ms INT, transaction_start_time_ms BIGINT, topics ARRAY<STRUCT<topic STRING, partitions ARRAY<INT>>>>>').transaction_states AS states
        FROM sound WHERE api IN ('DescribeTransactions', 'ListTransactions'))
  CROSS JOIN LATERAL explode(states) AS each_rows(each) WHERE coalesce(each.error_code, 'NONE') = 'NONE'
),
touched AS (
  SELECT run, id, transactional_id, topic.topic, number
  FROM states CROSS JOIN LATERAL explode(topics) AS topic_rows(topic) CROSS JOIN LATERAL explode(topic.partitions) AS number_rows(number)
),
identities AS (
  SELECT calls.run, calls.id, calls.api, calls.client_id, calls.software, get_json_object(request, '$.transactional_id') AS transactional_id,
         granted.producer_id, granted.producer_epoch
  FROM granted JOIN calls ON calls.run = granted.run AND calls.id = granted.id CROSS JOIN era
  WHERE api = 'InitProducerId' AND get_json_object(request, '$.transactional_id') <> '' AND coalesce(size(faults), 0) = 0
    AND struct(calls.run, calls.era) >= since
),
producers AS (
  SELECT run, id, ts_us, topic.name AS topic, piece.partition_index AS partition, each.*
  FROM (SELECT run, id, ts_us, from_json(response, 'topics ARRAY<STRUCT<name STRING, partitions ARRAY<STRUCT<partition_index INT, active_producers ARRAY<STRUCT<
          producer_id BIGINT, producer_epoch INT, last_sequence INT, last_timestamp BIGINT, coordinator_epoch INT, current_txn_start_offset BIGINT>>>>>>').topics AS topics
        FROM sound WHERE api = 'DescribeProducers')
  CROSS JOIN LATERAL explode(topics) AS topic_rows(topic) CROSS JOIN LATERAL explode(topic.partitions) AS piece_rows(piece)
  CROSS JOIN LATERAL explode(piece.active_producers) AS each_rows(each)
),
kept AS (
  SELECT topic, partition FROM batches WHERE damage IS NULL GROUP BY topic, partition, directory
  HAVING min(base_offset) = 0 AND sum(record_count) = max(last_offset) + 1
),
whole AS (
  SELECT count(*) = 0 AS is_whole FROM batches
  WHERE topic = '__transaction_state' AND partition NOT IN (SELECT partition FROM kept WHERE topic = '__transaction_state')
)
SELECT found.run, found.id, sound.api, sound.client_id, sound.software, named, what
FROM (
  SELECT run, id, transactional_id AS named, 'the identity of a producer' AS what
  FROM identities CROSS JOIN whole
  WHERE is_whole AND transactional_id IN (SELECT transactional_id FROM state_transactions) AND NOT EXISTS (
    SELECT 1 FROM state_transactions known WHERE known.transactional_id = identities.transactional_id
      AND known.transaction_producer_id = identities.producer_id AND known.transaction_producer_epoch = identities.producer_epoch)
  UNION ALL
  SELECT run, id, transactional_id AS named, 'an identity, timeout, beginning or state' AS what
  FROM states CROSS JOIN whole
  WHERE is_whole AND NOT EXISTS (
    SELECT 1 FROM state_transactions known WHERE known.transactional_id = states.transactional_id
      AND known.transaction_producer_id = states.producer_id
      AND coalesce(known.transaction_producer_epoch = states.producer_epoch, true)
      AND coalesce(known.timeout_ms = states.transaction_timeout_ms, true) AND coalesce(known.start_ms = states.transaction_start_time_ms, true) AND known.state = states.transaction_state)
  UNION ALL
  SELECT run, id, transactional_id, 'a partition of the transaction'
  FROM touched CROSS JOIN whole
  WHERE is_whole AND NOT EXISTS (SELECT 1 FROM coordinator known WHERE known.transactional_id = touched.transactional_id
                                 AND known.topic = touched.topic AND known.partition = touched.number)
  UNION ALL
  SELECT producers.run, producers.id, concat(producers.topic, '-', CAST(producers.partition AS STRING)), 'a producer'
  FROM producers JOIN kept ON kept.topic = producers.topic AND kept.partition = producers.partition
  WHERE NOT EXISTS (SELECT 1 FROM produced known WHERE known.topic = producers.topic AND known.partition = producers.partition
                    AND known.producer_id = producers.producer_id AND known.producer_epoch = producers.producer_epoch)
    OR (last_sequence >= 0 AND NOT EXISTS (
      SELECT 1 FROM produced known WHERE known.topic = producers.topic AND known.partition = producers.partition
        AND known.producer_id = producers.producer_id AND known.last_sequence = producers.last_sequence))
    OR (last_timestamp >= 0 AND NOT EXISTS (
      SELECT 1 FROM produced known WHERE known.topic = producers.topic AND known.partition = producers.partition
        AND known.producer_id = producers.producer_id AND known.max_timestamp_ms = producers.last_timestamp))
    OR (producers.coordinator_epoch >= 0 AND NOT EXISTS (
      SELECT 1 FROM produced known WHERE known.topic = producers.topic AND known.partition = producers.partition
        AND known.producer_id = producers.producer_id AND known.coordinator_epoch = producers.coordinator_epoch))
    OR EXISTS (SELECT 1 FROM current_produces sent
               WHERE sent.run = producers.run AND sent.topic = producers.topic AND sent.partition = producers.partition
                 AND sent.producer_id = producers.producer_id AND sent.producer_epoch = producers.producer_epoch AND sent.error = 'NONE'
                 AND sent.count > 0 AND sent.end_us < producers.ts_us
                 AND sent.base_sequence + sent.count - 1 BETWEEN producers.last_sequence + 1 AND producers.last_sequence + 1073741824)
    OR (current_txn_start_offset >= 0 AND NOT EXISTS (
      SELECT 1 FROM transactions known WHERE known.topic = producers.topic AND known.partition = producers.partition
        AND known.producer_id = producers.producer_id AND known.first_offset = producers.current_txn_start_offset))
) found JOIN (SELECT run, id, api, client_id, software FROM sound UNION ALL SELECT run, id, api, client_id, software FROM identities) sound ON sound.run = found.run AND sound.id = found.id
GROUP BY ALL
