-- title: a producer snapshot does not fit the log
-- severity: error
-- `OFFSET.snapshot` holds the producer states at that offset, and a broker that starts trusts it: with a wrong entry it accepts duplicates,
-- rejects valid batches, or forgets an open transaction. A producer may expire, but not before one that has been silent for longer
-- (`producer.id.expiration.ms`). The cleaner removes batches that a snapshot refers to: in a cleaned part the log may have older ones, and
-- no newer ones. A broker that stops cleanly writes a snapshot at the log end; if it is missing, the next start forgets all producers.
WITH names AS (SELECT DISTINCT directory, topic, partition, snapshot_offset FROM snapshots),
before AS (
  SELECT names.directory, names.topic, names.partition, names.snapshot_offset, producer_id,
         max_by(producer_epoch, base_offset) AS epoch, max_by(last_sequence, base_offset) FILTER (WHERE NOT is_control) AS sequence,
         max(last_offset) FILTER (WHERE NOT is_control) AS offset,
         max_by(producer_epoch, base_offset) FILTER (WHERE NOT is_control) AS data_epoch,
         max_by(last_offset - base_offset, base_offset) FILTER (WHERE NOT is_control) AS delta,
         max_by(max_timestamp_ms, base_offset) AS time_ms,
         max_by(coordinator_epoch, base_offset) FILTER (WHERE is_control) AS marker_coordinator
  FROM names JOIN produced ON produced.directory = names.directory AND produced.topic = names.topic
    AND produced.partition = names.partition AND produced.base_offset < names.snapshot_offset
  GROUP BY names.directory, names.topic, names.partition, names.snapshot_offset, producer_id
),
open AS (
  SELECT names.directory, names.topic, names.partition, names.snapshot_offset, producer_id, min(first_offset) AS open_from
  FROM names JOIN transactions ON transactions.directory = names.directory AND transactions.topic = names.topic
    AND transactions.partition = names.partition AND first_offset < names.snapshot_offset
    AND (marker_offset IS NULL OR marker_offset >= names.snapshot_offset)
  GROUP BY names.directory, names.topic, names.partition, names.snapshot_offset, producer_id
),
compared AS (
  SELECT coalesce(snapshots.directory, open.directory) AS directory, coalesce(snapshots.topic, open.topic) AS topic,
         coalesce(snapshots.partition, open.partition) AS partition,
         coalesce(snapshots.snapshot_offset, open.snapshot_offset) AS snapshot_offset,
         coalesce(snapshots.producer_id, open.producer_id) AS producer_id, snapshots.* EXCEPT (directory, topic, partition,
         snapshot_offset, producer_id), open.open_from, before.epoch, before.sequence, before.offset AS log_offset, data_epoch, before.delta,
         before.time_ms, before.marker_coordinator,
         count(*) OVER (PARTITION BY snapshots.directory, snapshots.topic, snapshots.partition, snapshots.snapshot_offset,
                        snapshots.producer_id) AS times
  FROM (SELECT * FROM snapshots WHERE entry IS NOT NULL) snapshots
  FULL OUTER JOIN open USING (directory, topic, partition, snapshot_offset, producer_id)
  LEFT JOIN before USING (directory, topic, partition, snapshot_offset, producer_id)
),
judged AS (
  SELECT compared.*, CASE
    WHEN entry IS NULL THEN 'an open transaction is missing'
    WHEN times > 1 THEN 'a producer is named twice'
    WHEN coordinator_epoch < -1 THEN 'a negative epoch of a coordinator'
    WHEN epoch IS NULL AND log_start = 0 AND cleaned_to = 0 THEN 'a producer that the log does not have'
    WHEN producer_epoch < epoch OR (producer_epoch > epoch AND NOT is_thinned) THEN 'another epoch'
    WHEN producer_epoch = data_epoch AND last_offset IS NULL THEN 'the last batch is missing'
    WHEN last_offset < log_offset OR (last_offset > log_offset AND NOT is_thinned) THEN 'another last batch'
    WHEN last_offset = log_offset AND (last_sequence <> sequence OR offset_delta <> delta) THEN 'another last batch'
    WHEN timestamp_ms <> time_ms AND cleaned_to = 0 THEN 'another time'
    WHEN coordinator_epoch >= 0 AND (coordinator_epoch < marker_coordinator OR (coordinator_epoch > marker_coordinator AND NOT is_thinned))
      THEN 'another coordinator epoch'
    WHEN transaction_offset IS DISTINCT FROM open_from AND least(transaction_offset, open_from) >= greatest(log_start, cleaned_to)
      THEN 'another open transaction' END AS what
  FROM (SELECT compared.*, log_start, log_end, cleaned_to, snapshot_offset <= cleaned_to OR coalesce(last_offset, -1) < cleaned_to AS is_thinned
        FROM compared JOIN partitions USING (directory, topic, partition)) compared
  WHERE snapshot_offset >= cleaned_to OR cleaned_to < 9223372036854775807
)
SELECT directory, topic, partition, snapshot_offset AS offset, producer_id, what, producer_epoch, epoch AS log_epoch,
       last_sequence, sequence AS log_sequence, last_offset, log_offset, transaction_offset, open_from
FROM (SELECT *, row_number() OVER (PARTITION BY directory, topic, partition, snapshot_offset, producer_id ORDER BY entry) AS number
      FROM judged WHERE what IS NOT NULL AND snapshot_offset <= log_end)
WHERE number = 1
UNION ALL
SELECT before.directory, topic, partition, before.snapshot_offset, before.producer_id, 'a producer is missing', NULL, before.epoch, NULL,
       before.sequence, NULL, before.offset, NULL, NULL
FROM before JOIN partitions USING (directory, topic, partition)
JOIN (SELECT directory, topic, partition, snapshot_offset, min(timestamp_ms) AS oldest_ms FROM snapshots
      WHERE entry IS NOT NULL AND transaction_offset IS NULL GROUP BY ALL) kept USING (directory, topic, partition, snapshot_offset)
WHERE before.time_ms > oldest_ms AND before.snapshot_offset <= log_end AND before.offset >= log_start
  AND NOT EXISTS (SELECT 1 FROM snapshots WHERE snapshots.directory = before.directory AND snapshots.topic = before.topic
    AND snapshots.partition = before.partition AND snapshots.snapshot_offset = before.snapshot_offset
    AND snapshots.producer_id = before.producer_id)
UNION ALL
SELECT names.directory, topic, partition, snapshot_offset, NULL, 'beyond the end of the log', NULL, NULL, NULL, NULL, NULL, log_end,
       NULL, NULL
FROM names JOIN partitions USING (directory, topic, partition)
WHERE snapshot_offset > log_end AND NOT is_damaged
UNION ALL
SELECT ends.directory, ends.topic, ends.partition, log_end, NULL, 'missing at the end of the log', NULL, NULL, NULL, NULL, NULL, log_end, NULL, NULL
FROM (SELECT partitions.directory, partitions.topic, partitions.partition, log_end
      FROM partitions JOIN (SELECT directory FROM brokers WHERE is_clean) USING (directory)
      JOIN produced ON produced.directory = partitions.directory AND produced.topic = partitions.topic
        AND produced.partition = partitions.partition AND produced.last_offset >= log_start
      WHERE NOT is_damaged GROUP BY ALL) ends
WHERE NOT EXISTS (SELECT 1 FROM names WHERE names.directory = ends.directory AND names.topic = ends.topic
    AND names.partition = ends.partition AND names.snapshot_offset = ends.log_end)
  AND NOT EXISTS (SELECT 1 FROM unreadable WHERE unreadable.directory = ends.directory AND unreadable.topic = ends.topic
    AND unreadable.partition = ends.partition AND file LIKE '%.snapshot')
