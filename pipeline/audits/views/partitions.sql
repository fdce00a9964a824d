-- Every partition's log in each directory: its bounds, and its topic's settings. `cleaned_to`: where the
-- cleaner may have been, the largest integer if that may be everywhere.
SELECT directory, topic, partition, topic_id, log_start, high_watermark, last_segment_base,
       first_segment_base, cleaner_offset AS cleaner_checkpoint, data_end,
       coalesce(is_compacted, topic IN ('__consumer_offsets', '__transaction_state')) AS is_compacted,
       CASE WHEN topic = '__cluster_metadata' THEN 9223372036854775807
            WHEN cleaner_offset IS NOT NULL THEN cleaner_offset
            WHEN coalesce(is_compacted, left(topic, 2) = '__') THEN 9223372036854775807 ELSE 0 END AS cleaned_to,
       greatest(coalesce(log_end, 0), last_segment_base) AS log_end,
       coalesce(is_damaged, false) AS is_damaged, is_recreated
FROM partition_files
LEFT JOIN (SELECT directory, topic, partition, greatest(max(last_offset) + 1, max(segment_base)) AS log_end,
                  max(last_offset) + 1 AS data_end, max(damage_kind <> 'torn') AS is_damaged
           FROM batches GROUP BY ALL) ends USING (directory, topic, partition)
LEFT JOIN (SELECT get_json_object(record, '$.resource_name') AS topic,
                  max_by(get_json_object(record, '$.value'), offset) LIKE '%compact%' AS is_compacted
           FROM state_metadata
           WHERE type = 'ConfigRecord' AND get_json_object(record, '$.name') = 'cleanup.policy'
           GROUP BY ALL) policies USING (topic)
LEFT JOIN (SELECT get_json_object(record, '$.name') AS topic,
                  CASE WHEN count(DISTINCT get_json_object(record, '$.topic_id')) > 1 THEN true
                       WHEN (SELECT min(base_offset) FROM batches WHERE topic = '__cluster_metadata') = 0
                       THEN false END AS is_recreated
           FROM state_metadata WHERE type = 'TopicRecord' GROUP BY ALL) creations USING (topic)
