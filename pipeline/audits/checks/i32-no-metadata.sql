-- title: a retry without looking up the leader (conformance 3 I32)
-- severity: warning
-- needs: journal
-- The partition has another leader, or is unknown, and the client sent to the same broker again without a Metadata request or the hint in
-- the response (KIP-951).
SELECT run, id, topic, partition, client_id, software, software_version, previous_error, broker
FROM (
  SELECT *, lag(error) OVER before AS previous_error, lag(end_us) OVER before AS previous_us,
         lag(broker) OVER before AS previous_broker, lag(hinted_leader) OVER before AS previous_hint
  FROM produces
  WINDOW before AS (PARTITION BY run, era, client_host, client_id, producer_id, topic, partition ORDER BY id)
) sent
WHERE previous_error IN ('NOT_LEADER_OR_FOLLOWER', 'UNKNOWN_TOPIC_OR_PARTITION', 'LEADER_NOT_AVAILABLE', 'FENCED_LEADER_EPOCH',
                         'UNKNOWN_LEADER_EPOCH', 'UNKNOWN_TOPIC_ID')
  AND ts_us >= previous_us AND broker = previous_broker AND coalesce(previous_hint, -1) < 0
  AND NOT EXISTS (SELECT 1 FROM calls WHERE calls.run = sent.run AND calls.api IN ('Metadata', 'DescribeTopicPartitions')
    AND calls.client_host = sent.client_host AND calls.client_id = sent.client_id
    AND calls.end_us BETWEEN previous_us AND sent.ts_us)
