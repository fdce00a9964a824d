-- title: a marker of an older epoch than its records
-- severity: error
-- The marker that ends a transaction has the epoch of its records, or a newer one (KIP-890). An older one came from a coordinator's request
-- that should have been fenced.
SELECT directory, topic, partition, marker_offset AS offset, producer_id, marker_epoch, epoch AS data_epoch, marker,
       first_offset
FROM transactions
WHERE marker_epoch < epoch
