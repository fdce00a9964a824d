-- title: contradictory ends of a transaction
-- severity: error
-- The coordinator decided one outcome, and a partition's marker has the other; or the markers of one transaction contradict each other: it
-- is no longer all or nothing. The n-th decision about a producer and epoch is compared with the n-th marker of each partition that it
-- names, the offsets topic included, if the logs have all of both; since KIP-890 (transaction version 2) each transaction has its own
-- epoch, so that one decision and its markers can always be compared. A recreated topic has lost its first markers: it is left out, unless
-- there are as many markers as decisions and no metadata at all.
WITH markers AS (
  SELECT *, row_number() OVER (PARTITION BY directory, topic, partition, producer_id, producer_epoch ORDER BY base_offset) AS number,
         count(*) OVER (PARTITION BY directory, topic, partition, producer_id, producer_epoch) AS markers
  FROM produced WHERE is_control AND control_type IN ('COMMIT', 'ABORT')
),
decided AS (
  SELECT *, row_number() OVER (PARTITION BY producer_id, producer_epoch, topic, partition ORDER BY state_offset) AS number,
         count(*) OVER (PARTITION BY producer_id, producer_epoch, topic, partition) AS decisions
  FROM decisions
),
alone AS (
  SELECT transactions.*, min(marker) OVER same AS least, count(*) OVER (PARTITION BY directory, topic, partition, producer_id, marker_epoch) AS times,
         min_by(marker, struct(topic, partition, directory)) OVER same AS first_marker
  FROM transactions WHERE marker IN ('COMMIT', 'ABORT') AND marker_epoch > epoch
  WINDOW same AS (PARTITION BY producer_id, marker_epoch)
)
SELECT markers.directory, topic, partition, base_offset AS offset, producer_id, producer_epoch, transactional_id,
       state AS coordinator_state, control_type AS marker, segment, position
FROM markers JOIN decided USING (producer_id, producer_epoch, topic, partition)
JOIN partitions USING (directory, topic, partition)
WHERE control_type <> upper(substr(state, 8)) AND CASE
  WHEN decisions = 1 AND client_transaction_version >= 2 THEN true
  ELSE markers.number = decided.number AND decisions = markers AND is_whole AND log_start = 0 AND cleaned_to = 0
       AND NOT coalesce(is_recreated, (SELECT count(*) > 0 FROM partitions WHERE topic = '__cluster_metadata')) END
UNION ALL
SELECT directory, topic, partition, marker_offset, producer_id, marker_epoch, NULL, NULL, marker, NULL, NULL
FROM alone
WHERE times = 1 AND marker <> first_marker
  AND NOT EXISTS (SELECT 1 FROM decisions WHERE decisions.producer_id = alone.producer_id AND decisions.producer_epoch = marker_epoch)
