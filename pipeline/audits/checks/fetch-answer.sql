-- title: an answer to Fetch that contradicts itself
-- severity: error
-- needs: journal
-- The last stable offset is not beyond the high watermark, nor the log's start; a consumer gets no record beyond the high
-- watermark, none without the offset that it asked for in the first batch or behind it, batches in order, no records with an
-- error, and aborted transactions only if it reads committed.
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
