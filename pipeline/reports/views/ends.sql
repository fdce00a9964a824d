-- Log ends in responses: the high watermark of a Fetch, and the offsets of a Produce.
SELECT run, era, topic, partition, end_us AS at_us, high_watermark AS log_end FROM fetches
WHERE high_watermark >= 0 AND coalesce(replica_id, -1) < 0
UNION ALL
SELECT run, era, topic, partition, end_us, acked_offset + count FROM produces WHERE error = 'NONE' AND acked_offset >= 0
