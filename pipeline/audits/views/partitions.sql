-- Every partition's log in each directory: its bounds, and its topic's configuration. `cleaned_to`: the offset up to which the cleaner may
-- have been, the largest integer if that may be everywhere. A replica copies what its leader's cleaner has left, so the cleaners of all
-- replicas count, if their directories are present and no replica was moved or replaced.
WITH policies AS (
  SELECT topic, max_by(value, offset) LIKE '%compact%' AS is_compacted, max(value LIKE '%compact%') AS was_compacted
  FROM topic_settings WHERE name = 'cleanup.policy'
  GROUP BY ALL
),
placed AS (
  SELECT fields.topic_id AS topic_id, fields.partition_id AS partition, max(size(fields.replicas)) AS replica_count,
         max(type = 'PartitionChangeRecord' OR fields.partition_epoch > fields.leader_epoch) AS is_moved
  FROM (SELECT type, from_json(record, 'topic_id STRING, partition_id INT, replicas ARRAY<INT>, leader_epoch INT, partition_epoch INT') AS fields
        FROM state_metadata WHERE type IN ('PartitionRecord', 'PartitionChangeRecord'))
  WHERE fields.replicas IS NOT NULL
  GROUP BY ALL
),
cleaned AS (
  SELECT topic, partition, count(*) AS directories, max(coalesce(cleaner_offset, 0)) AS known_to,
         max(coalesce(cleaner_offset, 9223372036854775807)) AS cleaned_to
  FROM partition_files GROUP BY topic, partition
)
SELECT partition_files.directory, partition_files.topic, partition_files.partition, partition_files.topic_id, log_start, high_watermark, last_segment_base, last_segment_bytes,
       first_segment_base, cleaner_offset AS cleaner_checkpoint, data_end,
       coalesce(is_compacted, topic IN ('__consumer_offsets', '__transaction_state')) AS is_compacted,
       CASE WHEN topic = '__cluster_metadata' THEN 0
            WHEN NOT coalesce(was_compacted, left(topic, 2) = '__') AND known_to = 0 THEN 0
            WHEN coalesce(is_moved, false) OR directories < coalesce(replica_count, 1) THEN 9223372036854775807
            ELSE cleaned.cleaned_to END AS cleaned_to,
       greatest(coalesce(log_end, 0), last_segment_base) AS log_end,
       coalesce(is_damaged, false) AS is_damaged, is_recreated, NOT coalesce(is_moved, true) AND replica_count = 1 AS is_only_replica
FROM partition_files
LEFT JOIN (SELECT directory, topic, partition, greatest(max(last_offset) + 1, max(segment_base)) AS log_end,
                  max(last_offset) + 1 AS data_end, max(damage_kind <> 'torn') AS is_damaged
           FROM batches GROUP BY ALL) ends USING (directory, topic, partition)
JOIN cleaned USING (topic, partition)
LEFT JOIN policies USING (topic)
LEFT JOIN (SELECT topic_id AS placed_id, partition, replica_count, is_moved FROM placed) placed
  ON placed_id = partition_files.topic_id AND placed.partition = partition_files.partition
LEFT JOIN (SELECT get_json_object(record, '$.name') AS topic,
                  CASE WHEN count(DISTINCT get_json_object(record, '$.topic_id')) > 1 THEN true
                       WHEN (SELECT min(base_offset) FROM batches WHERE topic = '__cluster_metadata') = 0
                       THEN false END AS is_recreated
           FROM state_metadata WHERE type = 'TopicRecord' GROUP BY ALL) creations USING (topic)
