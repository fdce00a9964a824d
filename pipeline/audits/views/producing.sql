-- All requests of transactional producers, in order of arrival: producer id and epoch in the request, and the response. `granted_*`: the id
-- and epoch in the response. `turn` counts the ends (EndTxn, InitProducerId) that were answered before.
WITH asked AS (
  SELECT run, era, id, ts_us, end_us, broker, connection, client_host, client_id, software, software_version, api, version,
         outcome, error, error_codes,
         coalesce(sent.transactional_id, sent.v3_and_below_transactional_id, get(sent.transactions, 0).transactional_id)
           AS transactional_id,
         coalesce(sent.producer_id, if(sent.v3_and_below_transactional_id <> '', sent.v3_and_below_producer_id, NULL),
                  get(sent.transactions, 0).producer_id, get(get(sent.topic_data, 0).partition_data, 0).records.producer_id) AS producer_id,
         coalesce(sent.producer_epoch, if(sent.v3_and_below_transactional_id <> '', sent.v3_and_below_producer_epoch, NULL),
                  get(sent.transactions, 0).producer_epoch, get(get(sent.topic_data, 0).partition_data, 0).records.producer_epoch)
           AS producer_epoch,
         sent.committed, sent.group_id, sent.transaction_timeout_ms, get(sent.transactions, 0).verify_only AS verify_only,
         coalesce(get(sent.transactions, 0).topics, sent.v3_and_below_topics) AS added,
         got.producer_id AS granted_id, got.producer_epoch AS granted_epoch
  FROM (SELECT *, from_json(request, 'transactional_id STRING, v3_and_below_transactional_id STRING, v3_and_below_producer_id
          BIGINT, v3_and_below_producer_epoch INT, v3_and_below_topics ARRAY<STRUCT<name STRING, partitions ARRAY<INT>>>,
          producer_id BIGINT, producer_epoch INT, committed BOOLEAN, group_id STRING, transaction_timeout_ms BIGINT,
          transactions ARRAY<STRUCT<transactional_id STRING, producer_id BIGINT, producer_epoch INT, verify_only BOOLEAN,
          topics ARRAY<STRUCT<name STRING, partitions ARRAY<INT>>>>>, topic_data ARRAY<STRUCT<partition_data ARRAY<STRUCT<records
          STRUCT<producer_id BIGINT, producer_epoch INT>>>>>') AS sent,
          from_json(response, 'producer_id BIGINT, producer_epoch INT') AS got
        FROM calls WHERE api IN ('InitProducerId', 'AddPartitionsToTxn', 'AddOffsetsToTxn', 'Produce', 'TxnOffsetCommit', 'EndTxn'))
)
SELECT *, count_if(api IN ('EndTxn', 'InitProducerId') AND outcome = 'answered' AND error IS NULL)
            OVER (PARTITION BY run, era, transactional_id ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS turn
FROM asked
WHERE transactional_id <> '' AND NOT coalesce(verify_only, false)
