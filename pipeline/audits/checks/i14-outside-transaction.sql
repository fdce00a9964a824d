-- title: a non-transactional batch during a transaction (conformance 3 I14)
-- severity: error
-- needs: journal
-- A producer with an open transaction on a partition sent it a batch that is not transactional.
SELECT run, id, topic, partition, stamped_offset AS offset, client_id, software, software_version, producer_id, producer_epoch,
       base_sequence
FROM (
  SELECT *, lag(transactional) OVER (PARTITION BY run, era, producer_id, producer_epoch, topic, partition ORDER BY id) AS was
  FROM produces WHERE producer_id >= 0
)
WHERE was AND NOT transactional
