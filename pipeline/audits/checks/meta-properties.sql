-- title: an invalid meta.properties
-- severity: error
-- `meta.properties` identifies the directory. A field is missing or of an unknown version, or two directories contradict each
-- other: of two clusters, or with one directory id. (Several directories of one node are those of `log.dirs`.)
WITH identities AS (
  SELECT *, count(*) OVER (PARTITION BY directory_id) AS same_id,
         min(cluster_id) OVER () AS first_cluster, max(cluster_id) OVER () AS last_cluster
  FROM brokers
)
SELECT directory, 'version' AS what, version AS value FROM identities WHERE coalesce(version, '') NOT IN ('0', '1')
UNION ALL SELECT directory, 'cluster.id', cluster_id FROM identities WHERE cluster_id IS NULL OR first_cluster <> last_cluster
UNION ALL SELECT directory, 'node.id', node_id FROM identities WHERE try_cast(node_id AS INT) IS NULL
UNION ALL SELECT directory, 'directory.id', directory_id FROM identities
  WHERE same_id > 1 AND directory_id IS NOT NULL
