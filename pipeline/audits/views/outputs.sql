-- The committed records of the output topics (`--id`).
SELECT topic, partition, offset, timestamp_ms, producer_id, id, key FROM identified WHERE role = 'output'
