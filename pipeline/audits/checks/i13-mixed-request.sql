-- title: a request that is half transactional (conformance 3 I13)
-- severity: error
-- needs: journal
-- A request has a transactional id if and only if its batches are transactional, and all of them have one producer and epoch.
SELECT run, id, client_id, software, software_version, max(transactional_id) AS transactional_id,
       array_sort(collect_set(transactional)) AS transactional, array_sort(collect_set(struct(producer_id, producer_epoch))) AS producers
FROM produces WHERE NOT without_records AND producer_id IS NOT NULL
GROUP BY run, id, client_id, software, software_version
HAVING count(DISTINCT transactional) > 1 OR max(transactional) <> (coalesce(max(transactional_id), '') <> '')
  OR (max(transactional) AND count(DISTINCT struct(producer_id, producer_epoch)) FILTER (WHERE producer_id IS NOT NULL
    AND producer_epoch IS NOT NULL) > 1)
