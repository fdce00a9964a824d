-- title: an invalid response to ApiVersions
-- severity: error
-- needs: journal
-- The response has APIs, each once, with ranges of versions that are not negative and in order, and likewise features. It does not differ
-- from what the same broker returned before and after it, and the epoch of the finalized features does not decrease.
WITH answers AS (
  SELECT run, era, id, broker, listener, version, client_id, software, got.api_keys AS keys, got.supported_features, got.finalized_features,
         got.finalized_features_epoch AS features_epoch, ts_us, end_us,
         array_sort(transform(got.api_keys, each -> concat(CAST(each.api_key AS STRING), ' ', CAST(each.min_version AS STRING), ' ',
           CAST(each.max_version AS STRING)))) AS listed
  FROM (SELECT *, from_json(response, 'api_keys ARRAY<STRUCT<api_key INT, min_version INT, max_version INT>>, supported_features ARRAY<STRUCT<name STRING,
          min_version INT, max_version INT>>, finalized_features_epoch BIGINT, finalized_features ARRAY<STRUCT<name STRING, min_version_level INT, max_version_level INT>>') AS got
        FROM calls WHERE api = 'ApiVersions' AND error IS NULL AND response IS NOT NULL AND coalesce(size(faults), 0) = 0)
)
SELECT run, id, client_id, software, to_json(filter(keys, each -> each.min_version < 0 OR each.max_version < each.min_version)) AS ranges
FROM (SELECT *, lag(listed) OVER neighbours AS before, lead(listed) OVER neighbours AS after,
             max(features_epoch) OVER earlier AS highest_epoch, max(end_us) OVER earlier AS answered_us FROM answers
      WINDOW neighbours AS (PARTITION BY run, era, broker, listener, version ORDER BY id),
             earlier AS (PARTITION BY run, era, broker ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
WHERE size(keys) = 0 OR size(filter(keys, each -> each.api_key < 0 OR each.min_version < 0 OR each.max_version < each.min_version)) > 0
  OR size(array_distinct(transform(keys, each -> each.api_key))) < size(keys)
  OR size(filter(supported_features, each -> each.min_version < 0 OR each.max_version < each.min_version)) > 0
  OR size(filter(finalized_features, each -> each.min_version_level < 0 OR each.max_version_level < each.min_version_level
    OR size(filter(supported_features, own -> own.name = each.name AND each.max_version_level > own.max_version)) > 0)) > 0
  OR size(array_distinct(transform(supported_features, each -> each.name))) < size(supported_features)
  OR (features_epoch BETWEEN 0 AND highest_epoch - 1 AND answered_us < ts_us)
  OR (before = after AND listed <> before)
