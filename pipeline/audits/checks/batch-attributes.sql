-- title: invalid batch attributes
-- severity: error
-- The header has attribute bits that no version of the format defines, a compressed control batch, or no leader epoch, which every leader
-- writes into the batches that it appends.
SELECT directory, topic, partition, base_offset AS offset, attributes, codec, leader_epoch, segment, position
FROM batches
WHERE damage IS NULL AND magic = 2
  AND ((attributes & 65408) <> 0 OR (is_control AND codec <> 'none') OR leader_epoch < 0)
