-- title: an aborted or refused record was polled
-- severity: error
-- needs: history
-- Its transaction was aborted, and the consumer reads committed only; or the producer knows that the record was refused.
SELECT topic, partition, offset, id, polled.client AS client, sent.client AS producer, outcome, is_failed, polled.file AS file, polled.line AS line
FROM polled_records polled JOIN sent_records sent USING (topic, id)
WHERE is_failed OR (outcome = 'aborted' AND isolation = 'read_committed')
