-- title: a metadata snapshot that the log contradicts
-- severity: error
-- A snapshot (`*.checkpoint`) has the topics, partitions, configurations, brokers, features, ACLs and quotas that result from the records
-- before its end, and its header their highest timestamp; the records after it are in the log. A controller or broker that starts trusts
-- it.
SELECT directory, '__cluster_metadata' AS topic, 0 AS partition, offset, file, what
FROM metadata_faults WHERE file LIKE '%.checkpoint' OR (file IS NULL AND what LIKE 'records between%')
