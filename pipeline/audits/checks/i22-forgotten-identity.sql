-- title: recovery without its identity (conformance 3 I22)
-- severity: warning
-- needs: journal
-- A producer that recovers sends its current id and epoch in InitProducerId (from version 3 on, KIP-360). On a connection where it already
-- had them it sent none: it cannot be distinguished from another instance.
SELECT run, id, client_id, software, software_version, transactional_id, had.granted_id AS had_id, had.granted_epoch AS had_epoch
FROM (
  SELECT *, last_value(if(api = 'InitProducerId' AND error IS NULL AND granted_id >= 0,
                          struct(granted_id, granted_epoch), NULL)) IGNORE NULLS
              OVER (PARTITION BY run, era, transactional_id, connection ORDER BY id
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS had
  FROM producing
)
WHERE api = 'InitProducerId' AND version >= 3 AND producer_id < 0 AND had IS NOT NULL
