-- title: a file that cannot be read
-- severity: error
-- A checkpoint, a producer snapshot, `partition.metadata` or an index does not keep to its format. A broker that starts takes it
-- for missing, or refuses to start; and the checks that need the file have not looked at what it speaks of.
SELECT directory, topic, partition, file, reason FROM unreadable
