-- Offsets that should be there and are not, in any replica of the selected topics: each from the audit's check of that name.
SELECT directory, topic, partition, expected_offset AS first_offset, offset - 1 AS last_offset, offset - expected_offset AS records,
       'missing between two batches' AS what, CAST(NULL AS STRING) AS whose
FROM offset_hole JOIN wanted_topics USING (topic)
UNION ALL
SELECT directory, topic, partition, log_end, offset - 1, missing_offsets, 'below the high watermark, behind the end of the log', NULL
FROM high_watermark_beyond_end JOIN wanted_topics USING (topic)
UNION ALL
SELECT directory, topic, partition, place, next_place - 1, next_place - place, concat('unreadable: ', damage), NULL
FROM (SELECT directory, topic, partition, place, damage,
             lead(place) OVER (PARTITION BY directory, topic, partition ORDER BY segment_base, position) AS next_place,
             damage_kind <> 'torn' OR segment_base < last_segment_base AS is_lost
      FROM ordered JOIN partitions USING (directory, topic, partition) JOIN wanted_topics USING (topic))
WHERE damage IS NOT NULL AND is_lost AND coalesce(next_place > place, true)
UNION ALL
SELECT directory, topic, partition, NULL, offset - 1, missing_records, 'sent by a producer, never written',
       concat('producer ', CAST(producer_id AS STRING), ', epoch ', CAST(producer_epoch AS STRING))
FROM sequence_gap JOIN wanted_topics USING (topic)
UNION ALL
SELECT directory, topic, partition, committed_offset, log_start - 1, log_start - committed_offset, 'deleted before the group read them',
       concat('group ', group_id)
FROM committed JOIN logs USING (topic, partition) WHERE committed_offset < log_start
UNION ALL
SELECT NULL, topic, partition, offset, offset + count - 1, count, 'acknowledged, and not in the log', concat('client ', client_id)
FROM acknowledged_absent JOIN wanted_topics USING (topic)
UNION ALL
SELECT NULL, topic, partition, min(offset), max(offset), count(*), 'recorded by a client, and not in the log', concat('client ', client)
FROM (SELECT topic, partition, offset, client, offset - row_number() OVER (PARTITION BY topic, partition, client ORDER BY offset) AS island
      FROM (SELECT DISTINCT topic, partition, offset, client FROM history_absent JOIN wanted_topics USING (topic)))
GROUP BY topic, partition, client, island
