-- title: a batch of an older format after one of a newer
-- severity: warning
-- Brokers since 3.0 write only format 2, so messages of format 0 or 1 can only be at the beginning of a log. After a batch of format 2 they
-- come from elsewhere, unless an old broker was configured to write the older format again (message.format.version).
SELECT old.directory, old.topic, old.partition, base_offset AS offset, magic, newer.since, segment, position
FROM batches old
JOIN (SELECT directory, topic, partition, min(base_offset) AS since FROM batches WHERE damage IS NULL AND magic >= 2
      GROUP BY directory, topic, partition) newer
  ON newer.directory = old.directory AND newer.topic = old.topic AND newer.partition = old.partition
WHERE old.damage IS NULL AND old.magic < 2 AND old.base_offset > newer.since
