-- title: the beginning of a compacted log is missing
-- severity: warning
-- A topic that has only been compacted since its creation loses no segment at its beginning: the cleaner keeps the first segment's name
-- even if none of its records is left, retention does not apply, and DeleteRecords is rejected.
WITH policies AS (
  SELECT get_json_object(record, '$.resource_name') AS topic, min(get_json_object(record, '$.value')) AS lowest,
         max(get_json_object(record, '$.value')) AS highest, min(offset) AS since
  FROM state_metadata WHERE type = 'ConfigRecord' AND get_json_object(record, '$.name') = 'cleanup.policy' GROUP BY ALL
),
made AS (
  SELECT get_json_object(record, '$.name') AS topic, max(offset) AS made_at
  FROM state_metadata WHERE type = 'TopicRecord' GROUP BY ALL
)
SELECT partitions.directory, topic, partitions.partition, log_start AS offset, first_segment_base
FROM partitions JOIN policies USING (topic) JOIN made USING (topic)
WHERE lowest = 'compact' AND highest = 'compact' AND since BETWEEN made_at AND made_at + 1000 AND is_recreated = false
  AND (log_start > 0 OR first_segment_base > 0)
