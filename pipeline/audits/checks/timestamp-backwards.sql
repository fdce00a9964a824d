-- title: append times go back
-- severity: warning
-- The log's own times (LogAppendTime) are those of the leader's clock, and one is before the one before it: the clock was set
-- back, or a leader with another clock took over. Searches by time may miss records.
SELECT directory, topic, partition, base_offset AS offset, max_timestamp_ms, previous_timestamp_ms,
       previous_timestamp_ms - max_timestamp_ms AS back_by_ms, segment, position
FROM ordered
WHERE damage IS NULL AND timestampType = 1 AND previous_timestamp_type = 1 AND max_timestamp_ms < previous_timestamp_ms
  AND NOT is_control
