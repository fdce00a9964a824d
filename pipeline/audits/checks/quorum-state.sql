-- title: a quorum-state that the log contradicts
-- severity: error
-- `quorum-state` has the latest epoch that the node knows, written before any record of it, and its leader, who is a voter. A node that has
-- forgotten an epoch may vote twice in it, which may lead to two controllers.
SELECT directory, '__cluster_metadata' AS topic, 0 AS partition, file, what FROM metadata_faults WHERE type = 'quorum-state'
