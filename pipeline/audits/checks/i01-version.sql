-- title: an API version that was not offered (conformance 3 I01)
-- severity: error
-- needs: journal
-- The broker announced its versions in ApiVersions on this connection; this request has another one.
SELECT run, calls.id, client_id, software, software_version, calls.api, calls.version, offered.min_version, offered.max_version
FROM calls JOIN (
  SELECT run, connection, max(answered_us) AS answered_us, key.api_key, max(key.min_version) AS min_version,
         min(key.max_version) AS max_version
  FROM (SELECT run, connection, end_us AS answered_us, from_json(response, 'error_code STRING, api_keys ARRAY<STRUCT<api_key INT,
          min_version INT, max_version INT>>') AS got FROM calls WHERE api = 'ApiVersions' AND response IS NOT NULL)
  CROSS JOIN LATERAL explode(got.api_keys) AS key_rows(key) WHERE got.error_code = 'NONE' GROUP BY ALL
) offered USING (run, connection)
WHERE offered.api_key = calls.api_key AND calls.ts_us >= answered_us AND calls.api <> 'ApiVersions'
  AND (calls.version < min_version OR calls.version > max_version)
