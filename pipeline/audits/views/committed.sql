-- The committed offset of each group and partition, as `__consumer_offsets` has it last.
SELECT group_id, committed_topic AS topic, committed_partition AS partition, committed_offset, commit_timestamp_ms
FROM (
  SELECT *, row_number() OVER (PARTITION BY group_id, committed_topic, committed_partition ORDER BY offset DESC) AS newest
  FROM state_offsets WHERE NOT coalesce(aborted, false)
)
WHERE newest = 1 AND NOT is_tombstone
