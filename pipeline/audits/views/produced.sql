-- The batches of producers with an id, markers included, in order, beside what the same producer did before.
-- `turn` counts the markers before a batch: the batches of one transaction and its marker have the same turn.
SELECT batches.directory, batches.topic, batches.partition, producer_id, producer_epoch, base_sequence, last_sequence,
       base_offset, last_offset, record_count, max_timestamp_ms, is_transactional, is_control, control_type,
       coordinator_epoch, segment, position,
       count_if(is_control)                                       OVER before AS turn,
       max(producer_epoch)                                        OVER before AS highest_epoch,
       last_value(if(is_control, NULL, producer_epoch), true)     OVER before AS data_epoch,
       last_value(if(is_control, NULL, last_sequence), true)      OVER before AS data_sequence,
       last_value(if(is_control, NULL, base_offset), true)        OVER before AS data_offset,
       last_value(if(is_control, coordinator_epoch, NULL), true)  OVER before AS previous_coordinator_epoch
FROM batches
WHERE damage IS NULL AND producer_id >= 0
WINDOW before AS (PARTITION BY directory, topic, partition, producer_id ORDER BY segment_base, position
                  ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
