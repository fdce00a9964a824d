-- title: two batches of a partition in flight on two connections (conformance 3 I10)
-- severity: warning
-- needs: journal
-- A producer had two different batches of one partition in flight on two connections: their order is undefined.
SELECT run, id, topic, partition, client_id, software, software_version, producer_id, producer_epoch, base_sequence,
       previous_sequence, connection, previous_connection
FROM (
  SELECT *, lag(base_sequence) OVER before AS previous_sequence, lag(connection) OVER before AS previous_connection,
         lag(end_us) OVER before AS previous_end_us, lag(broker) OVER before AS previous_broker
  FROM produces WHERE producer_id >= 0
  WINDOW before AS (PARTITION BY run, era, producer_id, producer_epoch, topic, partition ORDER BY id)
)
WHERE connection <> previous_connection AND broker = previous_broker AND base_sequence <> previous_sequence
  AND ts_us < previous_end_us
