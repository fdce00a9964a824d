-- title: append times go back
-- severity: warning
-- Log append times (LogAppendTime) come from the leader's clock, and one is before the previous one: the clock was set back, or a leader
-- with another clock took over. Searches by time may miss records. The same applies to the times of changes in the records of a
-- transactional id, by which its transactions time out. There a second is tolerated: Kafka takes the time before it appends the record.
SELECT directory, topic, partition, base_offset AS offset, max_timestamp_ms, previous_timestamp_ms,
       previous_timestamp_ms - max_timestamp_ms AS back_by_ms, segment, position
FROM ordered
WHERE damage IS NULL AND timestampType = 1 AND previous_timestamp_type = 1 AND max_timestamp_ms < previous_timestamp_ms
  AND NOT is_control
UNION ALL
SELECT CAST(NULL AS STRING), '__transaction_state', partition, offset, last_update_ms, previous_update_ms, previous_update_ms - last_update_ms,
       CAST(NULL AS STRING), CAST(NULL AS BIGINT)
FROM (SELECT *, lag(last_update_ms) OVER (PARTITION BY transactional_id ORDER BY offset) AS previous_update_ms
      FROM state_transactions WHERE NOT is_tombstone)
WHERE last_update_ms < previous_update_ms - 1000
