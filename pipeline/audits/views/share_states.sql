-- The records of `__share_group_state`, each with the previous ones of the same share partition. A tombstone ends a `life`, and an
-- initialization, which may reset everything, begins a new `run` within it. `is_whole`: whether the log has all its records.
WITH parsed AS (
  SELECT partition, offset, group_id, topic_id, shared_partition, type, is_tombstone, from_json(record, 'snapshot_epoch INT,
           state_epoch INT, leader_epoch INT, start_offset BIGINT, create_timestamp_ms BIGINT, write_timestamp_ms BIGINT,
           delivery_complete_count INT, state_batches ARRAY<STRUCT<first_offset BIGINT, last_offset BIGINT, delivery_state INT,
           delivery_count INT>>') AS fields
  FROM state_share
),
marked AS (
  SELECT parsed.*, coalesce(type = 'ShareSnapshot', false) AS is_snapshot,
         coalesce(type = 'ShareSnapshot' AND fields.leader_epoch = 0 AND coalesce(size(fields.state_batches), 0) <= 0
           AND fields.create_timestamp_ms = fields.write_timestamp_ms, false) AS is_initial
  FROM parsed
),
numbered AS (
  SELECT marked.*, sum(if(is_tombstone, 1, 0)) OVER each AS life, sum(if(is_tombstone OR is_initial, 1, 0)) OVER each AS run
  FROM marked WINDOW each AS (PARTITION BY group_id, topic_id, shared_partition ORDER BY offset)
)
SELECT numbered.partition, numbered.offset, group_id, topic_id, shared_partition, type, is_tombstone, is_snapshot, is_initial, life, run, fields.snapshot_epoch AS snapshot_epoch,
       fields.state_epoch AS state_epoch, fields.leader_epoch AS leader_epoch, fields.start_offset AS start_offset,
       fields.create_timestamp_ms AS create_timestamp_ms, fields.write_timestamp_ms AS write_timestamp_ms,
       fields.delivery_complete_count AS delivery_complete_count, fields.state_batches AS batches,
       max(if(is_snapshot, fields.snapshot_epoch, NULL)) OVER in_life AS previous_snapshot_epoch,
       max(if(is_snapshot, fields.state_epoch, NULL)) OVER in_life AS previous_state_epoch,
       max(fields.leader_epoch) OVER in_run AS previous_leader_epoch, max(fields.start_offset) OVER in_run AS previous_start_offset,
       max(if(is_snapshot, numbered.offset, NULL)) OVER in_run AS previous_snapshot,
       max(if(is_snapshot, numbered.offset, NULL)) OVER (PARTITION BY group_id, topic_id, shared_partition, life) AS last_snapshot,
       numbered.offset = max(numbered.offset) OVER (PARTITION BY group_id, topic_id, shared_partition) AS is_latest,
       coalesce(log_start = 0, false) AS is_whole
FROM numbered
LEFT JOIN (SELECT partition, max(log_start) AS log_start FROM partitions WHERE topic = '__share_group_state' GROUP BY partition) logs
  ON logs.partition = numbered.partition
WINDOW in_life AS (PARTITION BY group_id, topic_id, shared_partition, life ORDER BY numbered.offset
                   ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
       in_run AS (PARTITION BY group_id, topic_id, shared_partition, run ORDER BY numbered.offset
                  ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
