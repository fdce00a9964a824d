-- title: bounds of a log that contradict each other
-- severity: error
-- needs: live
-- The broker was queried for the log start, then for the last stable offset, then for the high watermark. Each must be equal to or greater
-- than the previous one.
SELECT topic, partition, high_watermark AS offset, log_start, last_stable_offset, high_watermark
FROM live_partitions
WHERE log_start < 0 OR log_start > last_stable_offset OR last_stable_offset > high_watermark
