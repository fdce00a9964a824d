-- title: index files that do not fit their segments
-- severity: warning
-- A broker that stops cleanly leaves the offset and time index of each segment, trimmed, and no index without its segment. A segment was
-- removed without its index, or an index without its segment. (A broker that starts builds missing indexes, and removes the others.)
SELECT directory, topic, partition, file, what FROM segment_files
