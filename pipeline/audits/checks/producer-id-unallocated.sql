-- title: a producer id that was never allocated
-- severity: error
-- The controller reserves blocks of producer ids in the metadata log (ProducerIdsRecord). This id, of a batch or in a record of
-- `__transaction_state`, is beyond the last block.
SELECT directory, topic, partition, min(offset) AS offset, producer_id, next_producer_id
FROM (
  SELECT directory, topic, partition, base_offset AS offset, producer_id FROM produced
  UNION ALL
  SELECT CAST(NULL AS STRING), '__transaction_state', partition, offset,
         greatest(transaction_producer_id, coalesce(previous_producer_id, -1), coalesce(next_producer_id, -1))
  FROM state_transactions WHERE NOT is_tombstone
)
CROSS JOIN (SELECT max(CAST(get_json_object(record, '$.next_producer_id') AS BIGINT)) AS next_producer_id
            FROM state_metadata WHERE type = 'ProducerIdsRecord')
WHERE producer_id >= next_producer_id
GROUP BY directory, topic, partition, producer_id, next_producer_id
