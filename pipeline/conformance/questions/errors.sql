-- title: errors, and what the client did next
-- One row per client, API, error and reaction. A reaction ends with the first request that does more than a lookup (Metadata,
-- FindCoordinator); `again`: the same request once more. `after_ms`: the median time since the response. `on_new_connection_share`: how
-- often the client opened a connection for it. `nothing more`: none of its next twelve requests is related. Clients are identified by host
-- and client id: of several with the same ones, another one may have reacted.
SELECT software, software_version, api, error, reaction, count(*) AS times,
       count(*) / sum(count(*)) OVER (PARTITION BY software, software_version, api, error) AS share,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY after_us) / 1000 AS after_ms, avg(if(on_new_connection, 1, 0)) AS on_new_connection_share,
       min(struct(run, id)).id AS first_id
FROM reactions
GROUP BY software, software_version, api, error, reaction
ORDER BY software, software_version, api, error, times DESC, reaction
