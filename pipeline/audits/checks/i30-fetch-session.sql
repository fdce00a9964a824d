-- title: a fetch session out of step (conformance 3 I30)
-- severity: error
-- needs: journal
-- Within a fetch session each request has the next epoch (KIP-227).
SELECT run, id, client_id, software, software_version, connection, session_id, session_epoch, previous_epoch
FROM (
  SELECT *, lag(session_epoch) OVER before AS previous_epoch, lag(outcome) OVER before AS previous_outcome
  FROM (SELECT DISTINCT run, era, id, client_id, software, software_version, connection, session_id, session_epoch, outcome,
               replica_id
        FROM fetches WHERE session_id > 0 AND session_epoch > 0)
  WINDOW before AS (PARTITION BY run, era, connection, session_id ORDER BY id)
)
WHERE session_epoch <> previous_epoch + 1 AND previous_outcome = 'answered'
  AND NOT (previous_epoch = 2147483647 AND session_epoch = 1)
