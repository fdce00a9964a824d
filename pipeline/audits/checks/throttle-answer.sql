-- title: throttled without a quota
-- severity: error
-- needs: journal
-- A response makes its client wait, and no quota was ever set for its user or its client id: the metadata log, which is complete from its
-- beginning, has no such quota, and no default one.
WITH quotas AS (
  SELECT from_json(record, 'entity ARRAY<STRUCT<entity_type STRING, entity_name STRING>>').entity AS entity
  FROM state_metadata WHERE type = 'ClientQuotaRecord'
),
throttled AS (
  SELECT run, id, api, client_id, software, regexp_replace(coalesce(principal, ''), '^User:', '') AS user_name,
         try_cast(get_json_object(response, '$.throttle_time_ms') AS BIGINT) AS throttle_ms
  FROM calls CROSS JOIN era
  WHERE response IS NOT NULL AND coalesce(size(faults), 0) = 0 AND struct(run, calls.era) >= since
)
SELECT run, id, api, client_id, software, throttle_ms
FROM throttled LEFT JOIN quotas ON size(filter(entity, each -> each.entity_type = 'ip'
  OR (each.entity_type = 'user' AND each.entity_name <> user_name)
  OR (each.entity_type = 'client-id' AND each.entity_name <> coalesce(client_id, '')))) = 0
WHERE throttle_ms > 0 AND (SELECT min(offset) FROM state_metadata) < 10
GROUP BY run, id, api, client_id, software, throttle_ms
HAVING count(entity) = 0
