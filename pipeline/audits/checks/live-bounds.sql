-- title: bounds of a log that contradict each other
-- severity: error
-- needs: live
-- The broker was asked for the log's start, then for its last stable offset, then for its high watermark. They may only be equal, or
-- greater than the one before.
SELECT topic, partition, high_watermark AS offset, log_start, last_stable_offset, high_watermark
FROM live_partitions
WHERE log_start < 0 OR log_start > last_stable_offset OR last_stable_offset > high_watermark
