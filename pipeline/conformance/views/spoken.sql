-- The requests by the software that sent them. Clients that never sent a software name are identified by their client id.
SELECT run, era, id, ts_us, end_us, duration_us, connection, client_host, client_id, api_key, api, version, outcome, error, faults,
       request, request_bytes, response_bytes,
       coalesce(max(software) OVER (PARTITION BY run, connection), concat('client id ', coalesce(client_id, '?'))) AS software,
       coalesce(max(software_version) OVER (PARTITION BY run, connection), '?') AS software_version
FROM calls
WHERE api_key >= 0
