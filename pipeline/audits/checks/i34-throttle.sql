-- title: a throttled client does not pause (conformance 3 I34)
-- severity: warning
-- needs: journal
-- The response asked the client to send nothing for a while (KIP-219), but it did.
SELECT run, id, client_id, software, software_version, api, previous_throttle_ms, div(ts_us - previous_us, 1000) AS after_ms
FROM (
  SELECT *, lag(try_cast(get_json_object(response, '$.throttle_time_ms') AS BIGINT)) OVER before AS previous_throttle_ms,
         lag(end_us) OVER before AS previous_us
  FROM calls
  WINDOW before AS (PARTITION BY run, connection ORDER BY id)
)
WHERE previous_throttle_ms > 100 AND ts_us > previous_us AND div(ts_us - previous_us, 1000) < previous_throttle_ms * 0.8
