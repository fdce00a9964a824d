-- title: an answer to ApiVersions that cannot be
-- severity: error
-- needs: journal
-- Each API occurs once, with a range of versions that are not negative and in order.
SELECT run, id, client_id, software, to_json(filter(keys, each -> each.min_version < 0 OR each.max_version < each.min_version)) AS ranges
FROM (SELECT *, from_json(response, 'api_keys ARRAY<STRUCT<api_key INT, min_version INT, max_version INT>>').api_keys AS keys
      FROM calls WHERE api = 'ApiVersions' AND error IS NULL AND response IS NOT NULL AND size(coalesce(faults, array())) = 0)
WHERE exists(keys, each -> each.min_version < 0 OR each.max_version < each.min_version)
  OR size(array_distinct(transform(keys, each -> each.api_key))) < size(keys)
