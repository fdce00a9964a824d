-- title: a metadata snapshot that the log contradicts
-- severity: error
-- A snapshot (`*.checkpoint`) has the topics, partitions, settings, brokers, features, ACLs and quotas that are left after the records
-- before its end, and its header their latest time; the records behind it are in the log. A controller or broker that starts believes it.
SELECT directory, '__cluster_metadata' AS topic, 0 AS partition, offset, file, what
FROM metadata_faults WHERE file LIKE '%.checkpoint' OR (file IS NULL AND what LIKE 'records between%')
