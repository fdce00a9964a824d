-- title: records for a partition that is not in the transaction (conformance 3 I11)
-- severity: error
-- needs: journal
-- Before KIP-890 (Produce up to version 11) a producer has to add a partition to its transaction, and receive the response, before it
-- writes to it. Otherwise the coordinator does not know where to send the marker.
WITH added AS (
  SELECT run, era, transactional_id, turn, topic.name AS topic, partition, min(end_us) AS added_us
  FROM producing CROSS JOIN LATERAL explode(added) AS topic_rows(topic) CROSS JOIN LATERAL explode(topic.partitions) AS partition_rows(partition)
  WHERE api = 'AddPartitionsToTxn' AND outcome = 'answered' AND error IS NULL GROUP BY ALL
)
SELECT sent.run, sent.id, sent.topic, sent.partition, sent.client_id, sent.software, sent.software_version,
       sent.transactional_id, sent.producer_id, sent.producer_epoch, sent.version
FROM produces sent JOIN producing step ON step.run = sent.run AND step.id = sent.id
LEFT JOIN added ON added.run = sent.run AND added.era = sent.era AND added.transactional_id = sent.transactional_id
  AND added.turn = step.turn AND added.topic = sent.topic AND added.partition = sent.partition
WHERE sent.transactional AND sent.version <= 11 AND (added_us IS NULL OR added_us > sent.ts_us) AND step.turn > 0
