-- title: which errors came, and what the client did next
-- One row per client, API, error and reaction. A reaction goes up to the first request that does more than look something up (Metadata,
-- FindCoordinator); `again`: the same request once more. `after_ms`: the median from the answer on. `on_new_connection_share`: how often
-- the client opened a connection for it. `nothing more`: within its next twelve requests nothing that belongs to it. Clients are distinguished
-- apart by host and client id: of several with the same ones, it may have been another one that acted.
SELECT software, software_version, api, error, reaction, count(*) AS times,
       count(*) / sum(count(*)) OVER (PARTITION BY software, software_version, api, error) AS share,
       percentile(after_us, 0.5) / 1000 AS after_ms, avg(if(on_new_connection, 1, 0)) AS on_new_connection_share,
       min(struct(run, id)).id AS first_id
FROM reactions
GROUP BY software, software_version, api, error, reaction
ORDER BY software, software_version, api, error, times DESC, reaction
