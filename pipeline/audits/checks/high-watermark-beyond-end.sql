-- title: the log ends before its high watermark
-- severity: error
-- The checkpoint says how far consumers were allowed to read, and the log ends before: records that were replicated, and perhaps
-- read, are gone. Not looked at where the log is damaged: then it may only be unreadable.
SELECT directory, topic, partition, high_watermark AS offset, log_end, high_watermark - log_end AS missing_offsets
FROM partitions
WHERE high_watermark > log_end AND NOT is_damaged
