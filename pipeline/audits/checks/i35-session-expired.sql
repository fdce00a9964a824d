-- title: a request after the session's end (conformance 3 I35)
-- severity: error
-- needs: journal
-- SaslAuthenticate limits the lifetime of the session (KIP-368). The client continued without re-authenticating.
SELECT run, id, client_id, software, software_version, api, authenticated.lifetime_ms,
       div(ts_us - authenticated.end_us, 1000) AS age_ms
FROM (
  SELECT *, last_value(if(api = 'SaslAuthenticate' AND error IS NULL, struct(end_us, lifetime_ms), NULL)) IGNORE NULLS
              OVER (PARTITION BY run, connection ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS authenticated
  FROM (SELECT *, try_cast(get_json_object(response, '$.session_lifetime_ms') AS BIGINT) AS lifetime_ms FROM calls)
)
WHERE authenticated.lifetime_ms > 0 AND api NOT IN ('SaslAuthenticate', 'SaslHandshake')
  AND div(ts_us - authenticated.end_us, 1000) > authenticated.lifetime_ms
