-- title: files that do not fit their segments
-- severity: warning
-- Each segment has an offset and a time index from its beginning, and a broker that stops cleanly leaves them trimmed, and no index without
-- its segment and no file of an unfinished compaction. A segment was removed or copied without its indexes, or an index without its segment. A broker that starts rebuilds all
-- indexes of a segment without an offset index, leaves a missing time index empty (searches by time read more), and removes the others.
-- A log was copied without its `leader-epoch-checkpoint`: after a clean shutdown a broker knows none of its earlier leader epochs, and followers
-- truncate to their high watermark.
SELECT directory, topic, partition, file, what FROM segment_files
WHERE file NOT LIKE '%leader-epoch-checkpoint'
UNION ALL
SELECT DISTINCT directory, topic, partition, file, what FROM segment_files JOIN ordered USING (directory, topic, partition)
WHERE file LIKE '%leader-epoch-checkpoint' AND damage IS NULL AND leader_epoch >= 0 AND magic = 2
