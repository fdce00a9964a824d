-- title: an answer to Fetch that contradicts itself
-- severity: error
-- needs: journal
-- The last stable offset is not beyond the high watermark, nor the log's start; a consumer gets no record beyond the high
-- watermark, none without the offset that it asked for in the first batch or behind it, batches in order, no records with an
-- error, and aborted transactions only if it reads committed. Who is sent to another replica (KIP-392) gets no records, and who asks for no session
-- (KIP-227) has none, in an answer or an error.
WITH given AS (
  SELECT *, coalesce(batches, array()) AS found FROM fetches WHERE coalesce(replica_id, -1) < 0 AND outcome = 'answered'
)
SELECT run, id, topic, partition, fetch_offset AS offset, client_id, software, error, high_watermark, last_stable_offset,
       log_start_offset, records_from, delivered_to
FROM given
WHERE (error = 'NONE' AND (high_watermark < 0 OR last_stable_offset > high_watermark OR log_start_offset > high_watermark
      OR delivered_to >= high_watermark))
  OR (error <> 'NONE' AND size(found) > 0)
  OR (size(found) > 0 AND fetch_offset > element_at(found, 1).last_offset)
  OR exists(sequence(2, greatest(size(found), 2)), at -> try_element_at(found, at).base_offset <= try_element_at(found, at - 1).last_offset)
  OR (NOT isolation AND size(coalesce(aborted_transactions, array())) > 0)
  OR (preferred_read_replica >= 0 AND size(found) > 0)
  OR (session_epoch = -1 AND (answered_session <> 0 OR (session_id = 0 AND call_error IN ('FETCH_SESSION_ID_NOT_FOUND', 'INVALID_FETCH_SESSION_EPOCH'))))
  OR (session_epoch > 0 AND call_error IS NULL AND answered_session NOT IN (0, session_id))
