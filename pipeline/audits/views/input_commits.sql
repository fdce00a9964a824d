-- The transactions' commits of input offsets: each covers the offsets since the previous one. Only if `__consumer_offsets` has all its
-- records.
SELECT state_offsets.group_id, committed_topic AS topic, committed_partition AS partition, producer_id,
       coalesce(lag(committed_offset) OVER (PARTITION BY state_offsets.group_id, committed_topic, committed_partition
                                            ORDER BY state_offsets.offset), 0) AS from_offset, committed_offset AS to_offset
FROM state_offsets
JOIN (SELECT partition, max(log_start) AS log_start, max(cleaned_to) AS cleaned_to FROM partitions
      WHERE topic = '__consumer_offsets' GROUP BY partition) logs ON logs.partition = state_offsets.partition
WHERE is_transactional AND NOT coalesce(aborted, false) AND NOT is_tombstone AND log_start = 0 AND cleaned_to = 0
  AND producer_id IN (SELECT producer_id FROM identified WHERE role = 'output' AND producer_id >= 0)
