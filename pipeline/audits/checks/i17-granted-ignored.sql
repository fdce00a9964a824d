-- title: the producer id and epoch from EndTxn were ignored (conformance 3 I17)
-- severity: error
-- needs: journal
-- From version 5 on EndTxn returns the producer id and epoch to continue with (KIP-890). The next request has others.
SELECT run, id, client_id, software, software_version, api, transactional_id, producer_id, producer_epoch, given.granted_id AS given_id,
       given.granted_epoch AS given_epoch
FROM (
  SELECT *, last_value(if(api = 'EndTxn' AND version >= 5 AND outcome = 'answered' AND error IS NULL AND granted_id >= 0,
                          struct(granted_id, granted_epoch, end_us), NULL)) IGNORE NULLS
              OVER before AS given,
         last_value(if(api = 'InitProducerId', end_us, NULL)) IGNORE NULLS OVER before AS begun_us
  FROM producing
  WINDOW before AS (PARTITION BY run, era, transactional_id ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
)
WHERE api NOT IN ('InitProducerId', 'EndTxn') AND given IS NOT NULL AND ts_us >= given.end_us
  AND coalesce(begun_us, 0) < given.end_us AND (producer_id <> given.granted_id OR producer_epoch <> given.granted_epoch)
