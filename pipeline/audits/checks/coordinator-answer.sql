-- title: an invalid response to FindCoordinator
-- severity: error
-- needs: journal
-- FindCoordinator returned no error, but no broker, or one that cannot be reached.
SELECT run, id, client_id, software, coordinator.key AS key, coordinator.node_id AS node_id
FROM (SELECT *, from_json(response, 'coordinators ARRAY<STRUCT<key STRING, node_id INT, port INT, error_code STRING>>').coordinators AS found
      FROM calls WHERE api = 'FindCoordinator' AND version >= 4 AND response IS NOT NULL AND coalesce(size(faults), 0) = 0)
CROSS JOIN LATERAL explode(found) AS coordinator_rows(coordinator)
WHERE (coordinator.error_code = 'NONE' AND (coordinator.node_id < 0 OR coordinator.port NOT BETWEEN 1 AND 65535))
UNION ALL
SELECT run, id, client_id, software, get_json_object(request, '$.key'), try_cast(get_json_object(response, '$.node_id') AS INT)
FROM calls WHERE api = 'FindCoordinator' AND version < 4 AND error IS NULL AND response IS NOT NULL AND coalesce(size(faults), 0) = 0
  AND (try_cast(get_json_object(response, '$.node_id') AS INT) < 0 OR try_cast(get_json_object(response, '$.port') AS INT) NOT BETWEEN 1 AND 65535)
