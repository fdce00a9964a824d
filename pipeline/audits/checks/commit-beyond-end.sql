-- title: a committed offset beyond the log's end
-- severity: error
-- The group goes on where there is nothing: it will be reset, by its policy to the end or the beginning, or miss what is
-- written until then.
SELECT partitions.directory, topic, partition, committed_offset AS offset, group_id, log_end,
       committed_offset - log_end AS beyond_by, commit_timestamp_ms
FROM committed JOIN partitions USING (topic, partition)
WHERE committed_offset > log_end
