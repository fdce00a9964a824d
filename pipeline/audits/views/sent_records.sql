-- The records that clients sent, one row for each topic and id: whether and where it was acknowledged, or rejected; how its transaction
-- ended.
SELECT sent.topic AS topic, sent.id AS id, sent.client AS client, sent.number AS number, sent.transaction AS transaction,
       coalesce(sent.idempotent, true) AS idempotent, acked.partition AS acked_partition, acked.offset AS acked_offset,
       acked.id IS NOT NULL AS is_acked, refused.id IS NOT NULL AS is_failed,
       CASE WHEN sent.transaction IS NULL THEN 'none' ELSE coalesce(ends.outcome, 'unknown') END AS outcome,
       sent.file AS file, sent.line AS line
FROM (SELECT * FROM client_events WHERE event = 'sent') sent
LEFT JOIN (SELECT topic, id, client, max(partition) AS partition, max(offset) AS offset FROM client_events
           WHERE event = 'acknowledged' GROUP BY topic, id, client) acked
  ON acked.topic = sent.topic AND acked.id = sent.id AND acked.client = sent.client
LEFT JOIN (SELECT DISTINCT topic, id, client FROM client_events WHERE event = 'failed') refused
  ON refused.topic = sent.topic AND refused.id = sent.id AND refused.client = sent.client
LEFT JOIN (SELECT client, transaction, max(outcome) AS outcome FROM client_events WHERE event = 'ended' GROUP BY client, transaction) ends
  ON ends.client = sent.client AND ends.transaction = sent.transaction
