-- The records that clients polled, with the previous offset of the same client in this assignment of the partition.
SELECT topic, partition, offset, id, client, run, number, coalesce(isolation, 'read_uncommitted') AS isolation, file, line,
       lag(offset) OVER (PARTITION BY client, topic, partition, run ORDER BY number) AS previous_offset
FROM client_events WHERE event = 'polled'
