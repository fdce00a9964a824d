-- title: an invalid meta.properties
-- severity: error
-- `meta.properties` identifies the directory. A field is missing or of an unknown version, or two directories contradict each other: they
-- belong to two clusters, or have the same directory id. Or the broker registered other directories, another broker registered this
-- one, or the file is gone: the broker does not start. (Several directories of one node are those of `log.dirs`. A directory with only the metadata log, `metadata.log.dir`, is not
-- registered.)
WITH identities AS (
  SELECT *, count(*) OVER (PARTITION BY directory_id) AS same_id,
         min(cluster_id) OVER () AS first_cluster, max(cluster_id) OVER () AS last_cluster
  FROM brokers
), registered AS (
  SELECT CAST(fields.broker_id AS STRING) AS node_id, max_by(fields.log_dirs, offset) AS log_dirs
  FROM (SELECT offset, from_json(record, 'broker_id INT, log_dirs ARRAY<STRING>') AS fields FROM state_metadata
        WHERE type IN ('RegisterBrokerRecord', 'BrokerRegistrationChangeRecord'))
  WHERE size(fields.log_dirs) > 0 GROUP BY 1
)
SELECT directory, 'version' AS what, version AS value FROM identities WHERE coalesce(version, '') NOT IN ('0', '1')
UNION ALL SELECT directory, 'cluster.id', cluster_id FROM identities WHERE coalesce(cluster_id, '') = '' OR first_cluster <> last_cluster
UNION ALL SELECT directory, 'node.id', node_id FROM identities WHERE try_cast(node_id AS INT) IS NULL
UNION ALL SELECT directory, 'directory.id', directory_id FROM identities
  WHERE (same_id > 1 AND directory_id IS NOT NULL) OR NOT regexp_like(directory_id, '^[A-Za-z0-9_-]{22}$')
    OR regexp_like(directory_id, '^A{20}[A-Y][A-Za-z0-9_-]$')
UNION ALL SELECT directory, 'node.id', node_id FROM identities WHERE try_cast(node_id AS INT) < 0
UNION ALL SELECT DISTINCT directory, 'the file is missing', CAST(NULL AS STRING) FROM checkpoints
  WHERE directory NOT IN (SELECT directory FROM brokers)
UNION ALL
SELECT directory, 'directory.id that the broker did not register', directory_id
FROM identities JOIN registered USING (node_id)
WHERE directory_id IS NOT NULL AND NOT array_contains(log_dirs, directory_id)
  AND (EXISTS (SELECT 1 FROM partitions WHERE partitions.directory = identities.directory AND topic <> '__cluster_metadata')
    OR NOT EXISTS (SELECT 1 FROM partitions WHERE partitions.directory = identities.directory))
UNION ALL
SELECT DISTINCT directory, 'node.id of no broker; directory.id of broker ' || registered.node_id, identities.node_id
FROM identities JOIN registered ON array_contains(log_dirs, directory_id)
WHERE identities.node_id NOT IN (SELECT node_id FROM registered)
