-- title: an aborted or refused record was polled
-- severity: error
-- needs: history
-- The record's transaction was aborted, and the consumer uses read_committed; or the producer knows that the record was rejected.
SELECT topic, partition, offset, id, polled.client AS client, sent.client AS producer, outcome, is_failed, polled.file AS file, polled.line AS line
FROM polled_records polled JOIN sent_records sent USING (topic, id)
WHERE is_failed OR (outcome = 'aborted' AND isolation = 'read_committed')
