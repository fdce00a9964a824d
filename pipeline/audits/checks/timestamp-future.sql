-- title: records with timestamps in the future
-- severity: warning
-- The highest timestamp of a batch is more than an hour ahead of this machine's clock: a producer's clock is wrong, or it uses another
-- unit. Retention by time keeps the segment until then, and everything after it.
SELECT directory, topic, partition, base_offset AS offset, max_timestamp_ms, producer_id, segment, position
FROM batches
WHERE damage IS NULL AND max_timestamp_ms > now_ms() + 3600000
