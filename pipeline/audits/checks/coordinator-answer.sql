-- title: an invalid answer to FindCoordinator
-- severity: error
-- needs: journal
-- FindCoordinator answered without an error, and named no broker; or it answered for a key that was not asked for.
SELECT run, id, client_id, software, coordinator.key AS key, coordinator.node_id AS node_id
FROM (SELECT *, from_json(request, 'coordinator_keys ARRAY<STRING>').coordinator_keys AS keys,
             from_json(response, 'coordinators ARRAY<STRUCT<key STRING, node_id INT, error_code STRING>>').coordinators AS found
      FROM calls WHERE api = 'FindCoordinator' AND version >= 4 AND response IS NOT NULL AND size(coalesce(faults, array())) = 0)
LATERAL VIEW explode(found) AS coordinator
WHERE (coordinator.error_code = 'NONE' AND coordinator.node_id < 0) OR NOT array_contains(keys, coordinator.key)
