-- title: a file that cannot be read
-- severity: error
-- A checkpoint, a producer snapshot, `partition.metadata` or an index is malformed. A broker that starts treats it as missing, or refuses
-- to start; checks that need the file have skipped what it describes. Or a broker refuses to start because of a name: of a folder that is
-- no partition's, or of a segment's file without an offset.
SELECT directory, topic, partition, file, reason FROM unreadable
