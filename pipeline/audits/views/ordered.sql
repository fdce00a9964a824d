-- Every batch, and every stretch of bytes that is none, in the order of the log, beside what stands before it.
SELECT *,
       coalesce(base_offset, stated_offset, previous_last_offset + 1, segment_base) AS place
FROM (
  SELECT found_batches.*,
         lag(last_offset)        OVER log AS previous_last_offset,
         lag(leader_epoch)       OVER log AS previous_leader_epoch,
         lag(max_timestamp_ms)   OVER log AS previous_timestamp_ms,
         lag(timestampType)      OVER log AS previous_timestamp_type,
         lag(damage)             OVER log AS previous_damage,
         lead(segment_base)      OVER log AS next_segment_base
  FROM found_batches
  WINDOW log AS (PARTITION BY directory, topic, partition ORDER BY segment_base, position)
)
