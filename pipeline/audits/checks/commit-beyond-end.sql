-- title: a committed offset beyond the log's end
-- severity: error
-- The group continues at an offset that does not exist yet: it will be reset, by its policy to the end or the beginning, or miss what is
-- written until then. Checked against the longest replica: one that lags, or stopped earlier, ends before.
SELECT directory, topic, partition, committed_offset AS offset, group_id, log_end,
       committed_offset - log_end AS beyond_by, commit_timestamp_ms
FROM committed JOIN (
  SELECT topic, partition, max(log_end) AS log_end, max_by(directory, log_end) AS directory FROM partitions GROUP BY topic, partition
) logs USING (topic, partition)
WHERE committed_offset > log_end
