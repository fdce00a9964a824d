-- title: a batch outside the open transaction of its producer
-- severity: error
-- A producer with an open transaction on the partition wrote a batch that is not part of it: an abort will not undo it.
SELECT plain.directory, plain.topic, plain.partition, plain.base_offset AS offset, plain.producer_id, plain.producer_epoch,
       open.first_offset AS transaction_from, open.marker_offset AS transaction_to, segment, position
FROM produced plain JOIN transactions open USING (directory, topic, partition, producer_id, turn)
WHERE NOT plain.is_control AND NOT plain.is_transactional AND plain.base_offset > open.first_offset
