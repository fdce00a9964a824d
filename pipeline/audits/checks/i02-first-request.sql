-- title: the first request is neither ApiVersions nor SaslHandshake (conformance 3 I02)
-- severity: warning
-- needs: journal
-- A client asks first which versions the broker serves. Old ones did not, and guess.
SELECT run, id, client_id, software, software_version, api, version, connection
FROM (SELECT *, row_number() OVER (PARTITION BY run, connection ORDER BY id) AS place FROM calls)
WHERE place = 1 AND api NOT IN ('ApiVersions', 'SaslHandshake')
