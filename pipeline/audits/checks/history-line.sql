-- title: an invalid line in a history
-- severity: error
-- needs: history
-- The line cannot be parsed, or it contradicts earlier lines: an acknowledgement of what the client has not sent, one id sent twice, or a
-- transaction that ended in two ways.
SELECT file, line, reason AS what, NULL AS id, NULL AS client FROM client_bad_lines
UNION ALL
SELECT acked.file, acked.line, 'not sent by this client', acked.id, acked.client
FROM client_events acked
WHERE acked.event IN ('acknowledged', 'failed')
  AND NOT EXISTS (SELECT 1 FROM client_events sent WHERE sent.event = 'sent' AND sent.client = acked.client AND sent.topic = acked.topic
                  AND sent.id = acked.id AND sent.number < acked.number)
UNION ALL
SELECT max(file), max(line), 'sent twice', id, max(client) FROM client_events WHERE event = 'sent' GROUP BY topic, id HAVING count(*) > 1
UNION ALL
SELECT max(file), max(line), 'ended in two ways', transaction, client FROM client_events WHERE event = 'ended'
GROUP BY client, transaction HAVING count(DISTINCT outcome) > 1
UNION ALL
SELECT sent.file, sent.line, 'sent in a transaction that had ended', sent.id, sent.client
FROM client_events sent JOIN client_events ends ON ends.client = sent.client AND ends.transaction = sent.transaction
WHERE sent.event = 'sent' AND ends.event = 'ended' AND ends.number < sent.number
UNION ALL
SELECT file, line, 'acknowledged and failed', id, client FROM sent_records WHERE is_acked AND is_failed
