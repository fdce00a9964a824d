-- The transactions in the logs themselves: one row per partition, producer and marker; without a marker it is open.
SELECT directory, topic, partition, producer_id, turn,
       min(if(is_transactional AND NOT is_control, base_offset, NULL))      AS first_offset,
       max(if(is_transactional AND NOT is_control, last_offset, NULL))      AS last_offset,
       max(if(is_transactional AND NOT is_control, producer_epoch, NULL))   AS epoch,
       sum(if(is_transactional AND NOT is_control, record_count, 0))        AS records,
       min(if(is_transactional AND NOT is_control, max_timestamp_ms, NULL)) AS first_ms,
       max(if(is_control, base_offset, NULL))                               AS marker_offset,
       CASE max(CASE WHEN NOT is_control THEN NULL WHEN control_type = 'COMMIT' THEN 3 WHEN control_type = 'ABORT' THEN 2
                     WHEN control_type IS NOT NULL THEN 1 END)
         WHEN 3 THEN 'COMMIT' WHEN 2 THEN 'ABORT' WHEN 1 THEN 'another' END   AS marker,
       max(if(is_control, producer_epoch, NULL))                            AS marker_epoch,
       max(if(is_control, max_timestamp_ms, NULL))                          AS marker_ms
FROM produced
WHERE (is_transactional AND NOT is_control) OR (is_control AND record_count = 1)
GROUP BY directory, topic, partition, producer_id, turn
