-- title: an EndTxn that was retried with the opposite result (conformance 3 I16)
-- severity: error
-- needs: journal
-- The response to an EndTxn was lost, or had a retriable error, and the retry has the opposite result: the first one may have taken effect.
SELECT run, id, client_id, software, software_version, transactional_id, producer_id, producer_epoch, committed,
       previous_committed, previous_error
FROM (
  SELECT *, lag(committed) OVER before AS previous_committed, lag(error) OVER before AS previous_error,
         lag(outcome) OVER before AS previous_outcome, lag(api) OVER before AS previous_api
  FROM producing WHERE api <> 'AddOffsetsToTxn'
  WINDOW before AS (PARTITION BY run, era, transactional_id, producer_id, producer_epoch ORDER BY id)
)
WHERE api = 'EndTxn' AND previous_api = 'EndTxn' AND committed <> previous_committed
  AND (previous_outcome <> 'answered' OR previous_error IN ('CONCURRENT_TRANSACTIONS', 'NOT_COORDINATOR',
       'COORDINATOR_LOAD_IN_PROGRESS', 'COORDINATOR_NOT_AVAILABLE', 'REQUEST_TIMED_OUT'))
