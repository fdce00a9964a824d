-- title: a transaction that does not end
-- severity: error
-- needs: live
-- The coordinator should have aborted the transaction 30 seconds ago, when its timeout expired; or it has decided the outcome but not
-- completed it within 30 seconds: its markers are not written.
SELECT transactional_id, producer_id, producer_epoch, state, coordinator, timeout_ms, max(age_ms) AS age_ms,
       max(in_state_ms) AS in_state_ms, count(topic) AS partitions
FROM live_transactions
WHERE (state = 'Ongoing' AND age_ms > timeout_ms + 30000) OR in_state_ms > 30000
GROUP BY transactional_id, producer_id, producer_epoch, state, coordinator, timeout_ms
