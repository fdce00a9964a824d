-- The producer ids and epochs that producers got, from InitProducerId and (from version 5 on) EndTxn.
SELECT run, era, id, end_us, got.producer_id, got.producer_epoch
FROM (SELECT *, from_json(response, 'producer_id BIGINT, producer_epoch INT') AS got FROM calls
      WHERE api IN ('InitProducerId', 'EndTxn') AND error IS NULL AND response IS NOT NULL)
WHERE got.producer_id >= 0
