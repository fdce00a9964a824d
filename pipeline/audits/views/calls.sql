-- The journal's lines, with the peer's host, and the time when the response was ready.
SELECT *, ts_us + greatest(coalesce(duration_us, 0), 0) AS end_us, regexp_replace(client, ':[0-9]+$', '') AS client_host
FROM wire
WHERE v IS NOT NULL
