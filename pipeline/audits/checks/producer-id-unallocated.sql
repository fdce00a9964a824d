-- title: a producer id that was never allocated
-- severity: error
-- The controller reserves blocks of producer ids in the metadata log (ProducerIdsRecord). This id is beyond the last block.
SELECT directory, topic, partition, min(base_offset) AS offset, producer_id, next_producer_id
FROM produced CROSS JOIN (SELECT max(CAST(get_json_object(record, '$.next_producer_id') AS BIGINT)) AS next_producer_id
                          FROM state_metadata WHERE type = 'ProducerIdsRecord')
WHERE producer_id >= next_producer_id
GROUP BY directory, topic, partition, producer_id, next_producer_id
