-- title: a new epoch that does not begin at 0 (conformance 3 I05)
-- severity: error
-- needs: journal
-- The first batch of a producer's epoch on a partition has sequence 0. Checked if the journal shows how the producer got its id and epoch.
SELECT run, id, topic, partition, stamped_offset AS offset, client_id, software, software_version, producer_id, producer_epoch,
       base_sequence, error
FROM (
  SELECT *, row_number() OVER (PARTITION BY run, era, producer_id, producer_epoch, topic, partition ORDER BY id) AS place
  FROM produces WHERE producer_id >= 0 AND base_sequence >= 0
) sent
WHERE place = 1 AND base_sequence > 0 AND EXISTS (
  SELECT 1 FROM granted WHERE granted.run = sent.run AND granted.era = sent.era AND granted.producer_id = sent.producer_id
    AND granted.id < sent.id)
