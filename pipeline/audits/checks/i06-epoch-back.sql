-- title: an epoch that goes back (conformance 3 I06)
-- severity: error
-- needs: journal
-- On one connection a producer sent an older epoch than before: it mixes up its identities.
SELECT run, id, topic, partition, client_id, software, software_version, producer_id, producer_epoch, highest_epoch
FROM (
  SELECT *, max(producer_epoch) OVER (PARTITION BY run, era, connection, producer_id ORDER BY id
                                      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS highest_epoch
  FROM produces WHERE producer_id >= 0
)
WHERE producer_epoch < highest_epoch
