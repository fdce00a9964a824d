-- The committed offset of each group and partition, the last one in `__consumer_offsets`. Offsets that are pending in an open transaction
-- are not committed, nor are those of an aborted transaction that ended after its records were read.
SELECT group_id, committed_topic AS topic, committed_partition AS partition, committed_offset, committed_leader_epoch,
       commit_timestamp_ms, expire_timestamp_ms, topic_id
FROM (
  SELECT *, row_number() OVER (PARTITION BY group_id, committed_topic, committed_partition ORDER BY offset DESC) AS newest
  FROM state_offsets
  WHERE NOT coalesce(aborted, false)
    AND NOT (is_transactional AND EXISTS (
      SELECT 1 FROM transactions open WHERE open.topic = '__consumer_offsets' AND open.partition = state_offsets.partition
        AND open.producer_id = state_offsets.producer_id AND open.first_offset <= state_offsets.offset
        AND (open.marker IS NULL OR (open.marker = 'ABORT' AND open.marker_offset > state_offsets.offset))))
)
WHERE newest = 1 AND NOT is_tombstone
