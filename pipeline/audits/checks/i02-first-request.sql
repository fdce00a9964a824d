-- title: the first request is neither ApiVersions nor SaslHandshake (conformance 3 I02)
-- severity: warning
-- needs: journal
-- A client first requests the versions that the broker serves. Old clients did not, and guess. Checked if the journal has the first request
-- of the connection: it begins with the run, or the connection was accepted after one whose ApiVersions it has.
SELECT run, id, client_id, software, software_version, api, version, connection
FROM (SELECT *, min(id) OVER (PARTITION BY run) AS first_id,
             min(if(api = 'ApiVersions', connection, NULL)) OVER (PARTITION BY run) AS first_greeting
      FROM (SELECT *, row_number() OVER (PARTITION BY run, connection ORDER BY id) AS place FROM calls) WHERE place = 1)
WHERE api NOT IN ('ApiVersions', 'SaslHandshake') AND (first_id = 1 OR connection > first_greeting)
