-- title: API versions offered and used
-- One row per client and API. `below_newest`: the difference between the newest version that the client used and the newest that it was
-- offered: the client does not know newer ones, or avoids them. Without `offered_*`: the client never sent ApiVersions, or the API is not
-- offered.
SELECT software, software_version, api, min(version) AS oldest, max(version) AS newest,
       array_sort(collect_set(version)) AS versions, max(min_version) AS offered_from, max(max_version) AS offered_to,
       max(max_version) - max(version) AS below_newest, count(*) AS requests
FROM spoken LEFT JOIN offered USING (run, connection, api_key)
GROUP BY software, software_version, api_key, api
ORDER BY software, software_version, api_key
