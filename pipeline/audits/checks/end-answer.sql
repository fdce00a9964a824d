-- title: a request in a transaction succeeded where it had to be refused
-- severity: error
-- needs: journal
-- EndTxn, AddPartitionsToTxn or AddOffsetsToTxn succeeded although the transactional id had a newer epoch before; or EndTxn returned an
-- epoch that is older than that of the request, or the logs have a marker of the other kind for the transaction that it ended. (Before
-- version 5 an epoch has many transactions: there no EndTxn of the other kind may have been sent in it.)
WITH ends AS (
  SELECT * FROM producing WHERE api = 'EndTxn' AND error IS NULL AND outcome = 'answered'
)
SELECT sent.run, sent.id, sent.client_id, sent.software, sent.transactional_id, sent.producer_id, sent.producer_epoch,
       sent.granted_epoch, max(newer.granted_epoch) AS newer_epoch, CAST(NULL AS STRING) AS marker
FROM producing sent LEFT JOIN producing newer ON newer.run = sent.run AND newer.era = sent.era
  AND newer.transactional_id = sent.transactional_id AND newer.api = 'InitProducerId' AND newer.error IS NULL
  AND newer.granted_id = sent.producer_id AND newer.granted_epoch > sent.producer_epoch AND newer.end_us < sent.ts_us
WHERE sent.api IN ('EndTxn', 'AddPartitionsToTxn', 'AddOffsetsToTxn') AND sent.error IS NULL AND sent.outcome = 'answered'
  AND (newer.run IS NOT NULL
       OR (sent.api = 'EndTxn' AND sent.granted_id = sent.producer_id AND sent.granted_epoch < sent.producer_epoch))
GROUP BY ALL
UNION ALL
SELECT ends.run, ends.id, ends.client_id, ends.software, ends.transactional_id, ends.producer_id, ends.producer_epoch, ends.granted_epoch,
       CAST(NULL AS INT), max(ended.marker)
FROM ends CROSS JOIN era
JOIN transactions ended ON ended.producer_id = ends.producer_id
  AND ended.marker_epoch = if(ends.version >= 5, ends.granted_epoch, ends.producer_epoch)
  AND ended.marker = if(ends.committed, 'ABORT', 'COMMIT') AND ended.records > 0
WHERE struct(ends.run, ends.era) >= since
  AND ((ends.version >= 5 AND ends.granted_id = ends.producer_id AND ends.granted_epoch = ends.producer_epoch + 1)
    OR (ends.version < 5
        AND EXISTS (SELECT 1 FROM producing granted WHERE granted.run = ends.run AND granted.api = 'InitProducerId' AND granted.error IS NULL
                    AND granted.granted_id = ends.producer_id AND granted.granted_epoch = ends.producer_epoch)
        AND NOT EXISTS (SELECT 1 FROM producing other WHERE other.api = 'EndTxn' AND other.producer_id = ends.producer_id
                        AND other.producer_epoch = ends.producer_epoch AND other.committed <> ends.committed)))
GROUP BY ALL
