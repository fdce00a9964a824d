-- title: a record that was never sent
-- severity: error
-- needs: history
-- A consumer polled the record, and no client of the history sent it to this topic, although some sent others: it was changed in transit,
-- or the histories are incomplete.
SELECT topic, partition, offset, id, client, file, line
FROM polled_records
WHERE topic IN (SELECT topic FROM sent_records)
  AND NOT EXISTS (SELECT 1 FROM sent_records WHERE sent_records.topic = polled_records.topic AND sent_records.id = polled_records.id)
