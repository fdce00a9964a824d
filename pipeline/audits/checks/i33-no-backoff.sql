-- title: retries without a pause (conformance 3 I33)
-- severity: warning
-- needs: journal
-- More than twenty times within a second a client sent the same request and got the same error: it does not back off.
SELECT run, max(id) AS id, client_id, software, software_version, api, error, second, count(*) AS times
FROM (SELECT *, date_trunc('second', timestamp_micros(ts_us)) AS second FROM calls WHERE error IS NOT NULL AND outcome = 'answered')
GROUP BY run, connection, client_id, software, software_version, api, error, second
HAVING count(*) > 20
