-- title: leader epochs that are missing or out of order
-- severity: error
-- `leader-epoch-checkpoint` has an entry for each leader epoch of the log, increasing in epoch and offset. An epoch is missing, or an entry
-- is out of order, begins after the first batch of its epoch, or is beyond the log end. A broker that is running or was killed has written
-- the epochs from before the new log start, so there a log counts from its first entry on; later epochs leave it so (`records-returned`).
WITH entries AS (
  SELECT *, lag(epoch) OVER (PARTITION BY directory, topic, partition ORDER BY entry) AS previous_epoch,
         lag(start_offset) OVER (PARTITION BY directory, topic, partition ORDER BY entry) AS previous_offset
  FROM epochs
),
unnamed AS (
  SELECT directory, topic, partition, leader_epoch
  FROM (SELECT directory, topic, partition, leader_epoch FROM ordered WHERE damage IS NULL AND leader_epoch >= 0 AND magic = 2
        GROUP BY ALL) present
  WHERE NOT EXISTS (SELECT 1 FROM epochs WHERE epochs.directory = present.directory AND epochs.topic = present.topic
                    AND epochs.partition = present.partition AND epochs.epoch = present.leader_epoch)
    AND NOT EXISTS (SELECT 1 FROM unreadable WHERE unreadable.directory = present.directory AND unreadable.topic = present.topic
                    AND unreadable.partition = present.partition AND file LIKE '%leader-epoch-checkpoint')
    AND NOT EXISTS (SELECT 1 FROM segment_files WHERE segment_files.directory = present.directory AND segment_files.topic = present.topic
                    AND segment_files.partition = present.partition AND file LIKE '%leader-epoch-checkpoint')
)
SELECT entries.directory, topic, partition, start_offset AS offset, epoch, 'an entry out of order' AS what
FROM entries JOIN partitions USING (directory, topic, partition)
WHERE epoch < 0 OR start_offset < 0 OR epoch <= previous_epoch OR start_offset <= previous_offset
  OR (start_offset > log_end AND NOT is_damaged)
UNION ALL
SELECT ordered.directory, ordered.topic, ordered.partition, min(base_offset), leader_epoch, 'an epoch without an entry'
FROM ordered JOIN unnamed USING (directory, topic, partition, leader_epoch) JOIN partitions USING (directory, topic, partition)
LEFT JOIN (SELECT epochs.directory, epochs.topic, epochs.partition, min(epochs.start_offset) AS first_entry,
                  min(CASE WHEN brokers.is_clean THEN epochs.epoch ELSE 2147483647 END) AS before_epoch
           FROM epochs JOIN brokers ON brokers.directory = epochs.directory
           GROUP BY epochs.directory, epochs.topic, epochs.partition) begun
  ON begun.directory = ordered.directory AND begun.topic = ordered.topic AND begun.partition = ordered.partition
    AND ordered.leader_epoch < begun.before_epoch
WHERE damage IS NULL AND magic = 2 AND last_offset >= greatest(log_start, coalesce(first_entry, log_start))
GROUP BY ordered.directory, ordered.topic, ordered.partition, leader_epoch
