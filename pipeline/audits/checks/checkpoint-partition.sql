-- title: checkpoints and directories of different partitions
-- severity: warning
-- A broker that stops cleanly writes the high watermark and the recovery point of each of its partitions and of no others; and its log
-- start offsets, without which deleted records come back. Either a checkpoint is missing or belongs to another directory, or a partition's
-- directory is missing. (If no partition is left, the last high watermarks remain. A replica that moves to this directory has entries, too.)
WITH wanted AS (
  SELECT directory, topic, partition, log_end, file
  FROM partitions JOIN (SELECT directory FROM brokers WHERE is_clean) USING (directory)
  CROSS JOIN (SELECT 'replication-offset-checkpoint' AS file UNION ALL SELECT 'recovery-point-offset-checkpoint')
  WHERE topic <> '__cluster_metadata' AND log_end > 0
)
SELECT directory, topic, partition, file, 'a partition without an entry' AS what
FROM wanted
WHERE NOT EXISTS (SELECT 1 FROM checkpoints WHERE checkpoints.directory = wanted.directory AND checkpoints.file = wanted.file
                  AND checkpoints.topic = wanted.topic AND checkpoints.partition = wanted.partition)
  AND NOT EXISTS (SELECT 1 FROM unreadable WHERE unreadable.directory = wanted.directory AND unreadable.file = wanted.file)
UNION ALL
SELECT directory, topic, partition, file, 'an entry without a partition'
FROM checkpoints JOIN (SELECT directory FROM brokers WHERE is_clean) USING (directory)
LEFT JOIN (SELECT directory, topic, partition, log_end FROM partitions) USING (directory, topic, partition)
WHERE log_end IS NULL AND NOT EXISTS (
  SELECT 1 FROM futures WHERE futures.directory = checkpoints.directory AND futures.topic = checkpoints.topic
    AND futures.partition = checkpoints.partition)
AND (file <> 'replication-offset-checkpoint' OR EXISTS (
  SELECT 1 FROM partitions WHERE partitions.directory = checkpoints.directory AND partitions.topic <> '__cluster_metadata'))
UNION ALL
SELECT directory, CAST(NULL AS STRING), CAST(NULL AS INT), 'log-start-offset-checkpoint', 'the file is missing'
FROM brokers
WHERE is_clean AND NOT has_log_starts AND EXISTS (
  SELECT 1 FROM partitions WHERE partitions.directory = brokers.directory AND partitions.topic <> '__cluster_metadata')
