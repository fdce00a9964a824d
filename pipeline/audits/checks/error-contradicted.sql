-- title: an error that the logs or earlier responses contradict
-- severity: error
-- needs: journal
-- The offset is in the log, and the broker had reported so; the topic and partition exist, and the same broker had returned them; the
-- member had its id, the version was offered, the group had committed, or the member is not static. The client fails, or resets its
-- position, without a reason.
WITH sound AS (
  SELECT * FROM calls WHERE outcome = 'answered' AND response IS NOT NULL AND coalesce(size(faults), 0) = 0
),
known AS (
  SELECT got.run, got.era, got.broker, got.principal, topic.name AS topic, piece.partition_index AS partition, min(end_us) AS known_us
  FROM (SELECT run, era, broker, principal, end_us, from_json(response, 'topics ARRAY<STRUCT<name STRING, topic_id STRING, error_code STRING,
          partitions ARRAY<STRUCT<partition_index INT>>>>').topics AS topics FROM sound WHERE api = 'Metadata') got
  CROSS JOIN LATERAL explode(topics) AS topic_rows(topic) CROSS JOIN LATERAL explode(topic.partitions) AS piece_rows(piece)
  WHERE topic.error_code = 'NONE' AND concat(topic.name, topic.topic_id) IN (SELECT concat(topic, topic_id) FROM metadata_topics)
  GROUP BY ALL
),
denied AS (
  SELECT got.run, got.era, got.id, got.broker, got.principal, got.ts_us, each.name AS topic, CAST(NULL AS INT) AS partition, each.error_code AS error
  FROM (SELECT *, from_json(response, 'topics ARRAY<STRUCT<name STRING, error_code STRING>>').topics AS topics FROM sound
        WHERE api IN ('Metadata', 'DescribeTopicPartitions')) got
  CROSS JOIN LATERAL explode(topics) AS each_rows(each)
  UNION ALL
  SELECT run, era, id, broker, principal, ts_us, coalesce(topic_names.topic, pieces.name), partition, error
  FROM (SELECT got.run, got.era, got.id, got.broker, got.principal, got.ts_us, each.name, each.topic_id, piece.partition_index AS partition,
               piece.error_code AS error
        FROM (SELECT *, from_json(response, 'topics ARRAY<STRUCT<name STRING, topic_id STRING, partitions ARRAY<STRUCT<partition_index INT,
                error_code STRING>>>>').topics AS topics FROM sound WHERE api IN ('ListOffsets', 'OffsetCommit', 'TxnOffsetCommit', 'DeleteRecords', 'DescribeProducers')) got
        CROSS JOIN LATERAL explode(topics) AS each_rows(each) CROSS JOIN LATERAL explode(each.partitions) AS piece_rows(piece)) pieces
  LEFT JOIN topic_names ON topic_names.topic_id = pieces.topic_id
  UNION ALL
  SELECT sound.run, sound.era, sound.id, sound.broker, sound.principal, sound.ts_us, topic, partition, fetches.error
  FROM sound JOIN fetches ON fetches.run = sound.run AND fetches.id = sound.id
  UNION ALL
  SELECT sound.run, sound.era, sound.id, sound.broker, sound.principal, sound.ts_us, topic, partition, produces.error
  FROM sound JOIN produces ON produces.run = sound.run AND produces.id = sound.id
),
offered AS (
  SELECT run, connection, max(end_us) AS offered_us, key.api_key, max(key.min_version) AS min_version, min(key.max_version) AS max_version
  FROM (SELECT run, connection, end_us, from_json(response, 'api_keys ARRAY<STRUCT<api_key INT, min_version INT, max_version INT>>').api_keys
          AS keys FROM sound WHERE api = 'ApiVersions' AND error IS NULL)
  CROSS JOIN LATERAL explode(keys) AS key_rows(key) GROUP BY ALL
),
found AS (
  SELECT denied.run, denied.id, denied.topic, denied.partition, CAST(NULL AS BIGINT) AS offset, denied.error, 'it was named before' AS why
  FROM denied JOIN known ON known.run = denied.run AND known.era = denied.era AND known.broker = denied.broker AND known.topic = denied.topic
    AND known.principal IS NOT DISTINCT FROM denied.principal AND (denied.partition IS NULL
      OR denied.partition = known.partition) AND known_us < denied.ts_us
  WHERE denied.error IN ('UNKNOWN_TOPIC_OR_PARTITION', 'UNKNOWN_TOPIC_ID')
  UNION ALL
  SELECT asked.run, asked.id, asked.topic, asked.partition, asked.asked_offset, asked.error, 'it is in the log'
  FROM current_fetches asked JOIN sound ON sound.run = asked.run AND sound.id = asked.id
  JOIN current_fetches before ON before.run = asked.run AND before.era = asked.era AND before.broker = asked.broker AND before.topic = asked.topic
    AND before.partition = asked.partition AND before.error = 'NONE' AND before.end_us < asked.ts_us AND before.high_watermark >= asked.asked_offset
  JOIN partitions ON partitions.topic = asked.topic AND partitions.partition = asked.partition
  WHERE asked.error = 'OFFSET_OUT_OF_RANGE' AND asked.asked_offset BETWEEN partitions.log_start AND partitions.log_end
  UNION ALL
  SELECT run, id, CAST(NULL AS STRING), CAST(NULL AS INT), CAST(NULL AS BIGINT), error, 'the request has one'
  FROM sound WHERE api = 'JoinGroup' AND error = 'MEMBER_ID_REQUIRED' AND get_json_object(request, '$.member_id') <> ''
  UNION ALL
  SELECT sound.run, id, CAST(NULL AS STRING), CAST(NULL AS INT), CAST(NULL AS BIGINT), error, 'the version was offered'
  FROM sound JOIN offered ON offered.run = sound.run AND offered.connection = sound.connection AND offered.api_key = sound.api_key
  WHERE error = 'UNSUPPORTED_VERSION' AND version BETWEEN min_version AND max_version AND offered_us < ts_us
    AND api IN ('Metadata', 'Heartbeat', 'LeaveGroup', 'SyncGroup', 'FindCoordinator', 'InitProducerId', 'EndTxn', 'AddOffsetsToTxn')
  UNION ALL
  SELECT asked.run, asked.id, CAST(NULL AS STRING), CAST(NULL AS INT), CAST(NULL AS BIGINT), asked.error, 'it had committed before'
  FROM (SELECT *, get_json_object(response, '$.results[0].group_id') AS group_id FROM sound
        WHERE api = 'DeleteGroups' AND error = 'GROUP_ID_NOT_FOUND' AND size(from_json(response, 'results ARRAY<STRUCT<group_id STRING>>').results) = 1) asked
  JOIN (SELECT run, era, end_us, at_ms, get_json_object(request, '$.group_id') AS group_id FROM sound
        WHERE api = 'OffsetCommit' AND error IS NULL) commits
    ON commits.run = asked.run AND commits.era = asked.era AND commits.group_id = asked.group_id AND commits.end_us < asked.ts_us
      AND asked.at_ms - commits.at_ms < 3600000
  WHERE NOT EXISTS (SELECT 1 FROM calls other WHERE other.api IN ('DeleteGroups', 'OffsetDelete', 'DeleteTopics') AND other.run = asked.run
                    AND other.ts_us < asked.end_us AND other.id <> asked.id)
  UNION ALL
  SELECT run, id, topic, partition, offset, CAST(NULL AS STRING), what FROM answer_faults WHERE kind = 'error-contradicted'
)
SELECT found.run, found.id, calls.api, calls.client_id, calls.software, topic, partition, offset, coalesce(found.error, calls.error) AS error, why
FROM found JOIN calls ON calls.run = found.run AND calls.id = found.id
GROUP BY ALL
