-- title: a commit beyond the polled records
-- severity: error
-- needs: history
-- Since its assignment, the client committed an offset after a record that it had not polled: after a failure, that record is not
-- processed.
SELECT ahead.topic AS topic, ahead.partition AS partition, known.offset AS offset, known.id AS id, ahead.client AS client,
       ahead.group_id AS group_id, ahead.offset AS committed_offset, ahead.file AS file, ahead.line AS line
FROM (SELECT * FROM client_events WHERE event = 'committed') ahead
JOIN poll_runs ON poll_runs.topic = ahead.topic AND poll_runs.partition = ahead.partition AND poll_runs.client = ahead.client
  AND poll_runs.run = ahead.run
JOIN known_records known ON known.topic = ahead.topic AND known.partition = ahead.partition
  AND known.offset >= start_offset AND known.offset < ahead.offset
WHERE NOT EXISTS (SELECT 1 FROM polled_records own WHERE own.topic = ahead.topic AND own.partition = ahead.partition
                  AND own.client = ahead.client AND own.run = ahead.run AND own.offset = known.offset AND own.number < ahead.number)
