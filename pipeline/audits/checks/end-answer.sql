-- title: EndTxn succeeded where it had to be refused
-- severity: error
-- needs: journal
-- EndTxn succeeded although the transactional id had a newer epoch before; or the response has an epoch that is older than that of the
-- request.
SELECT ended.run, ended.id, ended.client_id, ended.software, ended.transactional_id, ended.producer_id, ended.producer_epoch,
       ended.granted_epoch, max(newer.granted_epoch) AS newer_epoch
FROM producing ended LEFT JOIN producing newer ON newer.run = ended.run AND newer.era = ended.era
  AND newer.transactional_id = ended.transactional_id AND newer.api = 'InitProducerId' AND newer.error IS NULL
  AND newer.granted_id = ended.producer_id AND newer.granted_epoch > ended.producer_epoch AND newer.end_us < ended.ts_us
WHERE ended.api = 'EndTxn' AND ended.error IS NULL AND ended.outcome = 'answered'
  AND (newer.run IS NOT NULL OR (ended.granted_id = ended.producer_id AND ended.granted_epoch < ended.producer_epoch))
GROUP BY ALL
