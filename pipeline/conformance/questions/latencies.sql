-- title: response latencies
-- One row per client and API, answered requests only: from the arrival of a request until its response was ready, in the broker. It
-- includes intended waits: of Fetch up to its max.wait.ms, of JoinGroup and SyncGroup for the other members, and delays by faults.
SELECT software, software_version, api, count(*) AS requests, percentile_cont(0.5) WITHIN GROUP (ORDER BY duration_us) / 1000 AS p50_ms,
       percentile_cont(0.9) WITHIN GROUP (ORDER BY duration_us) / 1000 AS p90_ms,
         percentile_cont(0.99) WITHIN GROUP (ORDER BY duration_us) / 1000 AS p99_ms,
       max(duration_us) / 1000 AS most_ms
FROM spoken WHERE outcome = 'answered'
GROUP BY software, software_version, api_key, api
ORDER BY software, software_version, api_key
