-- title: a Fetch response that contradicts itself
-- severity: error
-- needs: journal
-- Neither the last stable offset nor the log start exceeds the high watermark; a consumer gets no record beyond the high watermark, or with
-- read_committed beyond the last stable offset, a first batch with or after the offset that it requested, batches in order, no records with
-- an error, and aborted transactions only with read_committed. A consumer that is redirected to another replica (KIP-392) gets no records; a
-- request without a session (KIP-227) gets none, neither in a response nor in an error; a session has the requested partitions. Not all
-- partitions are empty if one has records for this consumer. (Brokers note the high watermark before they read: whole batches beyond it may
-- have been appended in between, and are below it in later responses.)
WITH given AS (
  SELECT fetches.*, coalesce(batches, array()) AS found, min(if(error = 'NONE', high_watermark, NULL)) OVER behind AS later_watermark,
         min(if(error = 'NONE', last_stable_offset, NULL)) OVER behind AS later_stable_offset,
         max(if(session_epoch = 0, 1, 0)) OVER (PARTITION BY run, connection) = 1 AS is_from_the_beginning
  FROM fetches WHERE coalesce(replica_id, -1) < 0 AND outcome = 'answered'
  WINDOW behind AS (PARTITION BY run, era, topic, partition, broker ORDER BY id ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)
),
withheld AS (
  SELECT given.run, given.id
  FROM given JOIN calls ON calls.run = given.run AND calls.id = given.id AND coalesce(size(faults), 0) = 0
    AND try_cast(get_json_object(request, '$.max_bytes') AS BIGINT) > 0
  LEFT JOIN (SELECT topic, partition, max(is_compacted) AS is_compacted FROM partitions GROUP BY ALL) logs
    ON logs.topic = given.topic AND logs.partition = given.partition
  WHERE given.version >= 4 AND call_error IS NULL
  GROUP BY given.run, given.id
  HAVING count_if(size(found) > 0 OR given.error <> 'NONE' OR preferred_read_replica >= 0) = 0
    AND count_if(given.error = 'NONE' AND NOT is_compacted AND fetch_offset >= log_start_offset
                 AND fetch_offset < if(isolation, last_stable_offset, high_watermark)) > 0
)
SELECT run, id, topic, partition, fetch_offset AS offset, client_id, software, error, high_watermark, last_stable_offset,
       log_start_offset, records_from, delivered_to
FROM given
WHERE (error = 'NONE' AND (high_watermark < 0 OR last_stable_offset > high_watermark OR log_start_offset > high_watermark
      OR (delivered_to >= high_watermark
          AND NOT coalesce(later_watermark > delivered_to AND size(filter(found, each -> each.base_offset = high_watermark)) > 0, false))))
  OR (error = 'NONE' AND isolation AND last_stable_offset >= 0 AND delivered_to >= last_stable_offset
      AND NOT coalesce(later_stable_offset > delivered_to AND size(filter(found, each -> each.base_offset = last_stable_offset)) > 0, false))
  OR (error <> 'NONE' AND size(found) > 0)
  OR (size(found) > 0 AND fetch_offset > element_at(found, 1).last_offset)
  OR size(filter(sequence(2, greatest(size(found), 2)), place -> try_element_at(found, place).base_offset <= try_element_at(found,
    place - 1).last_offset)) > 0
  OR (error <> 'NONE' AND high_watermark >= 0)
  OR preferred_read_replica = broker
  OR (fetch_offset IS NULL AND error IS NOT NULL AND session_epoch > 0 AND call_error IS NULL AND is_from_the_beginning)
  OR concat(run, ' ', CAST(id AS STRING)) IN (SELECT concat(run, ' ', CAST(id AS STRING)) FROM withheld)
  OR (NOT isolation AND size(coalesce(aborted_transactions, array())) > 0)
  OR (preferred_read_replica >= 0 AND size(found) > 0)
  OR (session_epoch = -1 AND (answered_session <> 0 OR (session_id = 0 AND call_error IN ('FETCH_SESSION_ID_NOT_FOUND', 'INVALID_FETCH_SESSION_EPOCH'))))
  OR (session_epoch > 0 AND call_error IS NULL AND answered_session NOT IN (0, session_id))
