-- title: a refusal that a later response contradicts
-- severity: error
-- needs: journal
-- A member, producer or leader epoch that was permanently refused is accepted afterwards: an unknown member, an old generation, a fenced
-- epoch or a rebalance that began cannot become valid again, and only a member is asked to rejoin. Or a connection goes on whose
-- authentication failed, which a broker closes. One of the two responses is wrong.
WITH sound AS (
  SELECT run, era, id, ts_us, end_us, broker, connection, client_id, software, api, version, coalesce(error, 'NONE') AS error,
         from_json(request, 'group_id STRING, member_id STRING, generation_id INT, generation_id_or_member_epoch INT, member_epoch INT,
           transactional_id STRING, producer_id BIGINT, producer_epoch INT, v3_and_below_transactional_id STRING,
           v3_and_below_producer_id BIGINT, v3_and_below_producer_epoch INT') AS sent
  FROM calls WHERE outcome = 'answered' AND response IS NOT NULL AND coalesce(size(faults), 0) = 0
),
verdicts AS (
  SELECT run, era, id, ts_us, end_us, client_id, software, api, error, 'member of a generation' AS kind,
         concat_ws(' ', sent.group_id, sent.member_id, CAST(coalesce(sent.generation_id, sent.generation_id_or_member_epoch) AS STRING)) AS subject,
         error IN ('UNKNOWN_MEMBER_ID', 'ILLEGAL_GENERATION', 'FENCED_INSTANCE_ID') AS is_final,
         error IN ('NONE', 'REBALANCE_IN_PROGRESS') AS is_valid
  FROM sound WHERE api IN ('SyncGroup', 'Heartbeat', 'OffsetCommit') AND sent.member_id <> ''
    AND coalesce(sent.generation_id, sent.generation_id_or_member_epoch) >= 0
  UNION ALL
  SELECT run, era, id, ts_us, end_us, client_id, software, api, error, 'member',
         concat_ws(' ', CAST(broker AS STRING), sent.group_id, sent.member_id), error = 'UNKNOWN_MEMBER_ID',
         error IN ('NONE', 'REBALANCE_IN_PROGRESS', 'ILLEGAL_GENERATION')
  FROM sound WHERE api IN ('JoinGroup', 'SyncGroup', 'Heartbeat') AND sent.member_id <> ''
  UNION ALL
  SELECT run, era, id, ts_us, end_us, client_id, software, api, error, 'rebalance',
         concat_ws(' ', sent.group_id, sent.member_id, CAST(sent.generation_id AS STRING)), error = 'REBALANCE_IN_PROGRESS', error = 'NONE'
  FROM sound WHERE api IN ('Heartbeat', 'SyncGroup') AND sent.generation_id >= 0
  UNION ALL
  SELECT run, era, id, ts_us, end_us, client_id, software, api, error, 'member of an epoch',
         concat_ws(' ', sent.group_id, sent.member_id, CAST(sent.member_epoch AS STRING)), error IN ('UNKNOWN_MEMBER_ID', 'FENCED_MEMBER_EPOCH'), error = 'NONE'
  FROM sound WHERE api IN ('ConsumerGroupHeartbeat', 'ShareGroupHeartbeat', 'StreamsGroupHeartbeat') AND sent.member_epoch > 0
  UNION ALL
  SELECT run, era, id, ts_us, end_us, client_id, software, api, error, 'producer',
         concat_ws(' ', coalesce(sent.transactional_id, sent.v3_and_below_transactional_id),
           CAST(coalesce(sent.producer_id, sent.v3_and_below_producer_id) AS STRING),
           CAST(coalesce(sent.producer_epoch, sent.v3_and_below_producer_epoch) AS STRING)),
         error IN ('PRODUCER_FENCED', 'INVALID_PRODUCER_EPOCH', 'INVALID_PRODUCER_ID_MAPPING'), error = 'NONE'
  FROM sound WHERE api IN ('AddOffsetsToTxn', 'EndTxn', 'TxnOffsetCommit') OR (api = 'AddPartitionsToTxn' AND version < 4)
  UNION ALL
  SELECT sound.run, sound.era, sound.id, sound.ts_us, sound.end_us, sound.client_id, sound.software, sound.api, fetches.error, 'leader epoch',
         concat_ws(' ', CAST(sound.broker AS STRING), topic, CAST(partition AS STRING), CAST(current_leader_epoch AS STRING)),
         fetches.error = 'FENCED_LEADER_EPOCH', fetches.error = 'NONE'
  FROM sound JOIN fetches ON fetches.run = sound.run AND fetches.id = sound.id WHERE current_leader_epoch >= 0
  UNION ALL
  SELECT run, era, id, ts_us, end_us, client_id, software, api, error, 'connection', CAST(connection AS STRING),
         api = 'SaslAuthenticate' AND error <> 'NONE', api <> 'SaslAuthenticate' OR error = 'NONE'
  FROM sound WHERE struct(run, connection) IN (SELECT struct(run, connection) FROM sound WHERE api = 'SaslAuthenticate' AND error <> 'NONE')
)
SELECT run, refused.id AS id, client_id, software, refused.api AS api, refused.error AS refused_error, min(kind) AS kind,
       min(subject) AS subject, min(id) AS accepted_by
FROM (
  SELECT *, last_value(if(is_final, struct(id, end_us, error, api), NULL)) IGNORE NULLS OVER before AS refused
  FROM verdicts
  WINDOW before AS (PARTITION BY run, era, kind, subject ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
)
WHERE is_valid AND refused IS NOT NULL AND refused.end_us < ts_us
GROUP BY run, refused.id, client_id, software, refused.api, refused.error
