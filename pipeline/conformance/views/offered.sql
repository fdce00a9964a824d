-- The versions that each connection was offered in ApiVersions.
SELECT run, connection, key.api_key, max(key.min_version) AS min_version, max(key.max_version) AS max_version
FROM (SELECT run, connection, from_json(response, 'error_code STRING, api_keys ARRAY<STRUCT<api_key INT, min_version INT,
        max_version INT>>') AS got FROM calls WHERE api = 'ApiVersions' AND response IS NOT NULL)
CROSS JOIN LATERAL explode(got.api_keys) AS key_rows(key)
WHERE got.error_code = 'NONE'
GROUP BY ALL
