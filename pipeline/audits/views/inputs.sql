-- The records of the input topics (`--id`), with the offset up to which their partition was consumed: by the groups of `--group`, or else
-- by those whose offsets were committed in transactions of the outputs' producers. Null: unknown.
WITH groups AS (
  SELECT group_id FROM processors
  UNION
  SELECT group_id FROM state_offsets
  WHERE is_transactional AND NOT coalesce(aborted, false) AND NOT EXISTS (SELECT 1 FROM processors)
    AND producer_id IN (SELECT producer_id FROM identified WHERE role = 'output' AND producer_id >= 0)
    AND committed_topic IN (SELECT topic FROM identified WHERE role = 'input')
),
positions AS (
  SELECT committed.topic, committed.partition, max(committed_offset) AS committed_offset
  FROM committed JOIN groups ON groups.group_id = committed.group_id
  GROUP BY committed.topic, committed.partition
)
SELECT identified.topic, identified.partition, identified.offset, timestamp_ms, producer_id, id, key, committed_offset,
       EXISTS (SELECT 1 FROM groups) AS is_known
FROM identified LEFT JOIN positions ON positions.topic = identified.topic AND positions.partition = identified.partition
WHERE role = 'input'
