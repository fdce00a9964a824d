-- title: a broker with two addresses
-- severity: warning
-- needs: journal
-- Metadata and FindCoordinator responses at one listener had one broker with different hosts or ports, and the responses before and after
-- it were equal: clients connect to a wrong address, unless the broker moved for this moment. Or a broker reported another address for
-- itself on one connection.
WITH named AS (
  SELECT run, era, id, listener, client_id, software, each.node_id, concat(each.host, ':', CAST(each.port AS STRING)) AS address
  FROM (SELECT *, from_json(response, 'brokers ARRAY<STRUCT<node_id INT, host STRING, port INT>>').brokers AS brokers
        FROM calls WHERE api = 'Metadata' AND response IS NOT NULL AND coalesce(size(faults), 0) = 0)
  CROSS JOIN LATERAL explode(brokers) AS each_rows(each)
  UNION ALL
  SELECT run, era, id, listener, client_id, software, got.node_id, concat(got.host, ':', CAST(got.port AS STRING))
  FROM (SELECT *, from_json(response, 'node_id INT, host STRING, port INT') AS got
        FROM calls WHERE api = 'FindCoordinator' AND version < 4 AND error IS NULL AND response IS NOT NULL AND coalesce(size(faults), 0) = 0)
  UNION ALL
  SELECT run, era, id, listener, client_id, software, each.node_id, concat(each.host, ':', CAST(each.port AS STRING))
  FROM (SELECT *, from_json(response, 'coordinators ARRAY<STRUCT<node_id INT, host STRING, port INT, error_code STRING>>').coordinators AS coordinators
        FROM calls WHERE api = 'FindCoordinator' AND version >= 4 AND response IS NOT NULL AND coalesce(size(faults), 0) = 0)
  CROSS JOIN LATERAL explode(coordinators) AS each_rows(each) WHERE each.error_code = 'NONE'
)
SELECT run, id, client_id, software, node_id, address, before AS usual_address
FROM (SELECT *, lag(address) OVER neighbours AS before, lead(address) OVER neighbours AS after FROM named
      WINDOW neighbours AS (PARTITION BY run, era, listener, node_id ORDER BY id))
WHERE before = after AND address <> before
UNION ALL
SELECT answer_faults.run, answer_faults.id, client_id, software, CAST(NULL AS INT), what, CAST(NULL AS STRING)
FROM answer_faults JOIN calls ON calls.run = answer_faults.run AND calls.id = answer_faults.id
WHERE kind = 'node-address'
