-- The occasions for each invariant: requests that could have violated it or, if the violation is a later request, the response that forbade
-- it. A request counts once for an invariant. Without an occasion an invariant was not exercised, and so not kept either.
WITH sequenced AS (
  SELECT *, lag(id) OVER numbers AS previous_id, lag(transactional) OVER numbers AS was_transactional,
         lag(end_us) OVER numbers AS previous_us, row_number() OVER numbers AS place,
         lag(id) OVER repeated AS same_id, lag(id) OVER connected AS connected_id
  FROM produces WHERE producer_id >= 0
  WINDOW numbers AS (PARTITION BY run, era, producer_id, producer_epoch, topic, partition ORDER BY id),
         repeated AS (PARTITION BY run, era, producer_id, producer_epoch, topic, partition, base_sequence ORDER BY id),
         connected AS (PARTITION BY run, era, connection, producer_id ORDER BY id)
),
openings AS (
  SELECT *, min(id) OVER (PARTITION BY run) AS first_id, min(if(api = 'ApiVersions', connection, NULL)) OVER (PARTITION BY run) AS first_greeting
  FROM (SELECT *, row_number() OVER (PARTITION BY run, connection ORDER BY id) AS place FROM calls) WHERE place = 1
),
placed AS (
  SELECT *, lag(error) OVER before AS previous_error, lag(end_us) OVER before AS previous_us
  FROM produces
  WINDOW before AS (PARTITION BY run, era, client_host, client_id, producer_id, topic, partition ORDER BY id)
),
transacting AS (
  SELECT *, lag(api) OVER same AS previous_api, lag(outcome) OVER same AS previous_outcome, lag(error) OVER same AS previous_error,
         last_value(if(api = 'EndTxn' AND version >= 5 AND outcome = 'answered' AND error IS NULL AND granted_id >= 0, end_us, NULL)) IGNORE NULLS
           OVER before AS given_us,
         last_value(if(api = 'InitProducerId' AND error IS NULL AND granted_id >= 0, id, NULL)) IGNORE NULLS OVER here AS had_id,
         last_value(if(api = 'InitProducerId', id, NULL)) IGNORE NULLS OVER here AS initialized_id
  FROM producing
  WINDOW same AS (PARTITION BY run, era, transactional_id, producer_id, producer_epoch ORDER BY id),
         before AS (PARTITION BY run, era, transactional_id ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
         here AS (PARTITION BY run, era, transactional_id, connection ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
),
connected AS (
  SELECT run, id, api, lag(id) OVER before AS previous_id,
         lag(try_cast(get_json_object(response, '$.throttle_time_ms') AS BIGINT)) OVER before AS previous_throttle_ms,
         last_value(if(api = 'SaslAuthenticate' AND error IS NULL, try_cast(get_json_object(response, '$.session_lifetime_ms') AS BIGINT),
                       NULL)) IGNORE NULLS OVER (PARTITION BY run, connection ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
           AS lifetime_ms
  FROM calls WHERE api_key >= 0
  WINDOW before AS (PARTITION BY run, connection ORDER BY id)
),
positions AS (
  SELECT *, max(delivered_to) OVER before AS previous_to, max(current_leader_epoch) OVER before AS highest_epoch
  FROM fetches WHERE coalesce(replica_id, -1) < 0
  WINDOW before AS (PARTITION BY run, era, connection, topic, partition ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
),
sessions AS (
  SELECT run, id, lag(id) OVER (PARTITION BY run, era, connection, session_id ORDER BY id) AS previous_id
  FROM (SELECT DISTINCT run, era, id, connection, session_id FROM fetches WHERE session_id > 0 AND session_epoch > 0)
),
positions_committed AS (
  SELECT run, id, lag(id) OVER (PARTITION BY run, era, group_id, member_id, generation, topic, partition ORDER BY id) AS previous_id
  FROM effective_commits WHERE generation >= 0
),
joining AS (
  SELECT run, id, api, group_instance_id, last_value(if(api = 'JoinGroup' AND error IS NULL, id, NULL)) IGNORE NULLS OVER before AS joined_id,
         last_value(if(api = 'LeaveGroup' OR error IN ('UNKNOWN_MEMBER_ID', 'FENCED_INSTANCE_ID', 'ILLEGAL_GENERATION'), id, NULL)) IGNORE NULLS
           OVER before AS lost_id
  FROM members
  WINDOW before AS (PARTITION BY run, era, connection, group_id ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
),
beating AS (
  SELECT run, id, member_epoch, lag(id) OVER (PARTITION BY run, era, group_id, member_id ORDER BY id) AS previous_id
  FROM (SELECT run, era, id, get_json_object(request, '$.group_id') AS group_id, get_json_object(request, '$.member_id') AS member_id,
               try_cast(get_json_object(request, '$.member_epoch') AS INT) AS member_epoch
        FROM calls WHERE api IN ('ConsumerGroupHeartbeat', 'ShareGroupHeartbeat') AND outcome = 'answered')
),
known AS (SELECT DISTINCT run, era, producer_id FROM granted),
assigned AS (SELECT DISTINCT run, era, group_id, generation FROM assignments),
joined AS (SELECT DISTINCT run, era, group_id FROM members WHERE api = 'JoinGroup' AND error IS NULL),
found AS (
  SELECT 'i01-version' AS invariant, run, id FROM spoken JOIN offered USING (run, connection, api_key) WHERE api <> 'ApiVersions'
  UNION ALL SELECT 'i02-first-request', run, id FROM openings WHERE first_id = 1 OR connection >= first_greeting
  UNION ALL SELECT 'i03-sequence', run, id FROM sequenced WHERE base_sequence >= 0 AND previous_id IS NOT NULL
  UNION ALL SELECT 'i04-resend', run, id FROM sequenced WHERE base_sequence >= 0 AND same_id IS NOT NULL
  UNION ALL SELECT 'i05-first-sequence', run, id FROM sequenced JOIN known USING (run, era, producer_id) WHERE place = 1 AND base_sequence >= 0
  UNION ALL SELECT 'i06-epoch-back', run, id FROM sequenced WHERE connected_id IS NOT NULL
  UNION ALL SELECT 'i07-epoch-not-granted', run, id FROM producing JOIN known USING (run, era, producer_id) WHERE api <> 'InitProducerId'
  UNION ALL SELECT 'i08-producer-fields', run, id FROM sequenced
  UNION ALL SELECT 'i10-two-connections', run, id FROM sequenced WHERE ts_us < previous_us
  UNION ALL SELECT 'i11-not-added', run, id FROM produces WHERE transactional AND version <= 11
  UNION ALL SELECT 'i12-added-needlessly', run, id FROM producing WHERE api = 'Produce' AND version >= 12
  UNION ALL SELECT 'i13-mixed-request', run, id FROM produces WHERE NOT without_records AND producer_id IS NOT NULL
  UNION ALL SELECT 'i14-outside-transaction', run, id FROM sequenced WHERE was_transactional
  UNION ALL SELECT 'i15-after-end', run, id FROM producing WHERE api = 'EndTxn'
  UNION ALL SELECT 'i16-end-changed', run, id FROM transacting
    WHERE api = 'EndTxn' AND previous_api = 'EndTxn' AND (previous_outcome <> 'answered' OR previous_error IN ('CONCURRENT_TRANSACTIONS',
      'NOT_COORDINATOR', 'COORDINATOR_LOAD_IN_PROGRESS', 'COORDINATOR_NOT_AVAILABLE', 'REQUEST_TIMED_OUT'))
  UNION ALL SELECT 'i17-granted-ignored', run, id FROM transacting WHERE api NOT IN ('InitProducerId', 'EndTxn') AND ts_us >= given_us
  UNION ALL SELECT 'i18-offsets-not-added', run, id FROM producing WHERE api = 'TxnOffsetCommit' AND version <= 4
  UNION ALL SELECT 'i19-anonymous-offsets', run, id FROM commits JOIN joined USING (run, era, group_id)
    WHERE api = 'TxnOffsetCommit' AND version >= 3
  UNION ALL SELECT 'i20-after-fence', run, id FROM producing WHERE error IN ('PRODUCER_FENCED', 'TRANSACTIONAL_ID_AUTHORIZATION_FAILED')
    OR (error = 'INVALID_PRODUCER_EPOCH' AND api <> 'Produce')
  UNION ALL SELECT 'i21-after-unknown', run, id FROM sequenced WHERE error IN ('UNKNOWN_PRODUCER_ID', 'INVALID_PRODUCER_ID_MAPPING')
  UNION ALL SELECT 'i22-forgotten-identity', run, id FROM transacting WHERE api = 'InitProducerId' AND version >= 3 AND had_id IS NOT NULL
  UNION ALL SELECT 'i23-timeout-changed', run, id FROM transacting WHERE api = 'InitProducerId' AND initialized_id IS NOT NULL
  UNION ALL SELECT 'i24-generation', run, id FROM members
    WHERE api IN ('OffsetCommit', 'Heartbeat', 'SyncGroup') AND joined_generation IS NOT NULL AND ts_us >= joined_us
  UNION ALL SELECT 'i25-commit-after-loss', run, id FROM members
    WHERE api <> 'JoinGroup' AND error IN ('ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID', 'FENCED_INSTANCE_ID', 'FENCED_MEMBER_EPOCH')
  UNION ALL SELECT 'i26-not-assigned', run, id FROM commits JOIN assigned USING (run, era, group_id, generation)
    WHERE api = 'OffsetCommit' AND error = 'NONE' AND generation >= 0
  UNION ALL SELECT 'i27-commit-back', run, id FROM positions_committed WHERE previous_id IS NOT NULL
  UNION ALL SELECT 'i28-two-owners', run, id FROM assignments
  UNION ALL SELECT 'i29-fetch-skips', run, id FROM positions WHERE asked_offset IS NOT NULL AND previous_to IS NOT NULL
  UNION ALL SELECT 'i30-fetch-session', run, id FROM sessions WHERE previous_id IS NOT NULL
  UNION ALL SELECT 'i31-leader-epoch-back', run, id FROM positions WHERE asked_offset IS NOT NULL AND highest_epoch >= 0
  UNION ALL SELECT 'i32-no-metadata', run, id FROM placed
    WHERE previous_error IN ('NOT_LEADER_OR_FOLLOWER', 'UNKNOWN_TOPIC_OR_PARTITION', 'LEADER_NOT_AVAILABLE', 'FENCED_LEADER_EPOCH',
      'UNKNOWN_LEADER_EPOCH', 'UNKNOWN_TOPIC_ID') AND ts_us >= previous_us
  UNION ALL SELECT 'i33-no-backoff', run, id FROM calls WHERE error IS NOT NULL AND outcome = 'answered'
  UNION ALL SELECT 'i34-throttle', run, id FROM connected WHERE previous_throttle_ms > 100
  UNION ALL SELECT 'i35-session-expired', run, id FROM connected WHERE lifetime_ms > 0 AND api NOT IN ('SaslAuthenticate', 'SaslHandshake')
  UNION ALL SELECT 'i36-correlation', run, id FROM connected WHERE previous_id IS NOT NULL
  UNION ALL SELECT 'i37-member-epoch', run, id FROM beating WHERE member_epoch > 0 AND previous_id IS NOT NULL
  UNION ALL SELECT 'i38-no-member-id', run, id FROM joining
    WHERE api = 'JoinGroup' AND joined_id IS NOT NULL AND coalesce(lost_id, 0) < joined_id AND group_instance_id IS NULL
  UNION ALL SELECT 'i40-bad-batch', run, id FROM produces WHERE NOT without_records
)
SELECT DISTINCT invariant, run, id FROM found
