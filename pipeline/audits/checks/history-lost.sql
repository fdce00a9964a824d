-- title: an acknowledged record that no client got
-- severity: error
-- needs: history
-- The producer got an acknowledgement (and, in a transaction, the commit succeeded). A consumer started before its offset and passed it,
-- and neither this consumer nor any other polled the record.
SELECT topic, partition, offset, id, client, file, line
FROM known_records
WHERE NOT EXISTS (SELECT 1 FROM polled_records WHERE polled_records.topic = known_records.topic AND polled_records.id = known_records.id)
  AND EXISTS (SELECT 1 FROM poll_runs WHERE poll_runs.topic = known_records.topic AND poll_runs.partition = known_records.partition
              AND start_offset <= known_records.offset AND reached_offset > known_records.offset)
