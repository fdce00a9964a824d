-- title: what holds back the last stable offset
-- The transactions without a marker, in the longest replica of each partition, internal topics included. read_committed consumers get nothing
-- from `first_offset` of the one that is `first` in its partition; `held_back` offsets wait. `verdict`: `open` is normal for an active
-- producer; `overdue`: its timeout expired more than 30 seconds before the newest record of the directory, and its coordinator has not
-- ended it (15 minutes where the coordinator's log is not there); `hanging`: no coordinator will end it (KIP-664), `kafka-transactions.sh
-- abort` does.
WITH longest AS (
  SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY topic, partition ORDER BY log_end DESC, directory) AS place FROM partitions)
  WHERE place = 1 AND (NOT :names_topics OR topic IN (SELECT topic FROM wanted_topics))
),
held AS (
  SELECT open.topic, open.partition, open.first_offset, log_end, log_end - open.first_offset AS held_back,
         open.first_offset = min(open.first_offset) OVER (PARTITION BY open.topic, open.partition) AS first,
         coalesce(own.transactional_id, latest.transactional_id) AS transactional_id, open.producer_id, open.epoch AS producer_epoch,
         coalesce(own.state, latest.state) AS state, own.state IN ('Ongoing', 'PrepareCommit', 'PrepareAbort') AS is_known,
         newest_ms - if(own.start_ms > 0, own.start_ms, open.first_ms) AS age_ms, coalesce(own.timeout_ms, 900000) AS timeout_ms,
         EXISTS (SELECT 1 FROM whole_topics WHERE whole_topics.topic = '__transaction_state') AS is_whole
  FROM transactions open
  JOIN longest ON longest.directory = open.directory AND longest.topic = open.topic AND longest.partition = open.partition
  CROSS JOIN (SELECT max(max_timestamp_ms) AS newest_ms FROM batches WHERE max_timestamp_ms <= now_ms())
  LEFT JOIN coordinator own ON own.is_latest AND own.producer_id = open.producer_id AND own.topic = open.topic AND own.partition = open.partition
  LEFT JOIN (SELECT DISTINCT producer_id, transactional_id, state FROM coordinator WHERE is_latest) latest
    ON latest.producer_id = open.producer_id
  WHERE open.marker IS NULL AND open.first_offset IS NOT NULL
)
SELECT topic, partition, first_offset, log_end, held_back, first,
       CASE WHEN is_whole AND NOT coalesce(is_known, false) THEN 'hanging' WHEN age_ms > timeout_ms + 30000 THEN 'overdue' ELSE 'open' END AS verdict,
       transactional_id, producer_id, producer_epoch, state, age_ms, timeout_ms
FROM held
ORDER BY first DESC, held_back DESC, topic, partition, first_offset
