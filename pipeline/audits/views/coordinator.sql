-- The records of `__transaction_state` by transactional id, with a row for each partition.
SELECT DISTINCT transactional_id, offset AS state_offset, partition AS state_partition, state,
       transaction_producer_id AS producer_id, transaction_producer_epoch AS producer_epoch,
       timeout_ms, start_ms, last_update_ms, client_transaction_version,
       touched.topic AS topic, touched.partition AS partition,
       offset = max(offset) OVER (PARTITION BY transactional_id) AS is_latest
FROM state_transactions LEFT JOIN LATERAL explode(partitions) AS touched_rows(touched) ON true
