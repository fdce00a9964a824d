-- title: the log ends before its high watermark
-- severity: error
-- The checkpoint is the offset up to which consumers could read, and the log ends before it: records that were replicated, and perhaps
-- read, are gone. Not checked if the log is damaged, since it may only be unreadable, nor in a topic that was deleted and recreated, whose
-- checkpoint may be older than its log.
SELECT directory, topic, partition, high_watermark AS offset, log_end, high_watermark - log_end AS missing_offsets
FROM partitions
WHERE high_watermark > log_end AND NOT is_damaged AND NOT coalesce(is_recreated, false)
