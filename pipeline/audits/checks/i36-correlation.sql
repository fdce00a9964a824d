-- title: a repeated correlation id, or a changed client id (conformance 3 I36)
-- severity: warning
-- needs: journal
-- On one connection two consecutive requests have the same correlation id, or the client id changes.
SELECT run, id, client_id, software, software_version, api, correlation_id, previous_client_id, previous_correlation_id
FROM (
  SELECT *, lag(correlation_id) OVER before AS previous_correlation_id, lag(client_id) OVER before AS previous_client_id
  FROM calls WHERE api_key >= 0
  WINDOW before AS (PARTITION BY run, connection ORDER BY id)
)
WHERE correlation_id = previous_correlation_id OR client_id <> previous_client_id
