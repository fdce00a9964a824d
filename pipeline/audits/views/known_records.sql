-- The offsets that certainly hold a record for every consumer: acknowledged, and not in a transaction or in a committed one.
SELECT topic, acked_partition AS partition, acked_offset AS offset, id, client, number, file, line
FROM sent_records
WHERE is_acked AND acked_offset >= 0 AND NOT is_failed AND outcome IN ('none', 'committed')
