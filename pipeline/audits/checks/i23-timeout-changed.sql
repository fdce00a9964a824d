-- title: a transaction timeout that changes (conformance 3 I23)
-- severity: info
-- needs: journal
-- transaction.timeout.ms is a setting of an instance; here it changes from one InitProducerId to the next on the same connection.
SELECT run, id, client_id, software, software_version, transactional_id, transaction_timeout_ms, previous_ms
FROM (
  SELECT *, lag(transaction_timeout_ms) OVER (PARTITION BY run, era, transactional_id, connection ORDER BY id) AS previous_ms
  FROM producing WHERE api = 'InitProducerId'
)
WHERE transaction_timeout_ms <> previous_ms
