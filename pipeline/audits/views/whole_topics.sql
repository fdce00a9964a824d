-- The internal topics of which all partitions are present, in any directory: those in the metadata, or without metadata, as in a copy of a
-- running cluster, those whose partitions are numbered without a gap. `is_whole`: and their logs have all records.
WITH logs AS (
  SELECT topic, partition, max(log_start) AS log_start, max(cleaned_to) AS cleaned_to
  FROM partitions WHERE left(topic, 2) = '__' GROUP BY topic, partition
),
wanted AS (
  SELECT topic, count(*) AS expected FROM metadata_partitions GROUP BY topic
  UNION ALL
  SELECT topic, max(partition) + 1 FROM logs WHERE NOT EXISTS (SELECT 1 FROM metadata_topics) GROUP BY topic
)
SELECT logs.topic, min(log_start = 0 AND cleaned_to = 0) AS is_whole
FROM logs JOIN wanted ON wanted.topic = logs.topic
GROUP BY logs.topic HAVING count(*) >= max(wanted.expected)
