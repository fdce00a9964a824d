-- title: a producer id and epoch that were assigned twice
-- severity: error
-- needs: journal
-- InitProducerId gives each producer a unique id and epoch; the epoch of a transactional id only increases. Two producers with the same id
-- and epoch break each other's sequence numbers. (A producer that sends its current id and epoch, KIP-360, may get the same response
-- twice.)
WITH given AS (
  SELECT run, era, id, ts_us, end_us, client_id, software, get_json_object(request, '$.transactional_id') AS transactional_id,
         try_cast(get_json_object(request, '$.producer_id') AS BIGINT) AS requested_id,
         try_cast(get_json_object(response, '$.producer_id') AS BIGINT) AS producer_id,
         try_cast(get_json_object(response, '$.producer_epoch') AS INT) AS producer_epoch
  FROM calls WHERE api = 'InitProducerId' AND error IS NULL AND outcome = 'answered' AND response IS NOT NULL
    AND coalesce(size(faults), 0) = 0
)
SELECT run, id, client_id, software, transactional_id, producer_id, producer_epoch, highest_epoch
FROM (SELECT *, max(producer_epoch) OVER before AS highest_epoch, max(end_us) OVER before AS answered_us
      FROM given
      WINDOW before AS (PARTITION BY run, era, producer_id ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
WHERE producer_id < 0 OR producer_epoch < 0 OR (transactional_id IS NULL AND coalesce(requested_id, -1) = -1 AND producer_epoch > 0)
  OR (producer_epoch < highest_epoch AND answered_us < ts_us)
  OR (producer_epoch = highest_epoch AND answered_us < ts_us AND NOT coalesce(requested_id = producer_id, false))
