-- title: a record that was never sent
-- severity: error
-- needs: history
-- A consumer polled it, and no client of the history sent it to this topic, although some sent others: it was changed on its way, or
-- the histories are not complete.
SELECT topic, partition, offset, id, client, file, line
FROM polled_records
WHERE topic IN (SELECT topic FROM sent_records)
  AND NOT EXISTS (SELECT 1 FROM sent_records WHERE sent_records.topic = polled_records.topic AND sent_records.id = polled_records.id)
