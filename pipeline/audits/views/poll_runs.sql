-- Each assignment of a partition to a client in which it polled: its first and last offsets.
SELECT topic, partition, client, run, coalesce(max(assigned_offset), min(offset)) AS start_offset, max(offset) AS reached_offset,
       min(isolation) AS isolation
FROM polled_records
LEFT JOIN (SELECT topic, partition, client, run, max(offset) AS assigned_offset FROM client_events WHERE event = 'assigned'
           GROUP BY topic, partition, client, run) assigned USING (topic, partition, client, run)
GROUP BY topic, partition, client, run
