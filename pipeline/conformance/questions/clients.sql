-- title: clients
-- One row per client software and version, as clients identify themselves (KIP-511). They used `apis` of the `offered_apis`. `unanswered`:
-- requests without a response, because a connection ended or a fault dropped it.
SELECT software, software_version, count(DISTINCT client_id) AS client_ids, count(DISTINCT struct(run,
  connection)) FILTER (WHERE connection IS NOT NULL) AS connections,
       count(*) AS requests, count(DISTINCT api) AS apis, max(offered_apis) AS offered_apis, count(error) AS errors,
       count_if(outcome NOT IN ('answered', 'asked for no answer')) AS unanswered, count_if(size(faults) > 0) AS met_faults,
       timestamp_micros(min(ts_us)) AS first_at, timestamp_micros(max(ts_us)) AS last_at
FROM spoken LEFT JOIN (SELECT run, connection, count(*) AS offered_apis FROM offered GROUP BY ALL) USING (run, connection)
GROUP BY software, software_version
ORDER BY software, software_version
