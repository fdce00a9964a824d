-- title: a fenced producer wrote again
-- severity: error
-- A batch with an older epoch follows one with a newer epoch of the same producer: a zombie was not fenced.
SELECT directory, topic, partition, base_offset AS offset, producer_id, producer_epoch, highest_epoch, is_transactional,
       base_sequence, segment, position
FROM produced
WHERE NOT is_control AND producer_epoch < highest_epoch
