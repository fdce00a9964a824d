-- The group of each client, if it is certain: clients are identified by host and client id, and one that used two groups is left out.
SELECT run, era, client_host, client_id, max(group_id) AS group_id
FROM (SELECT run, era, client_host, client_id, get_json_object(request, '$.group_id') AS group_id FROM calls
      WHERE api IN ('JoinGroup', 'SyncGroup', 'Heartbeat', 'OffsetCommit', 'ConsumerGroupHeartbeat', 'TxnOffsetCommit'))
WHERE group_id IS NOT NULL
GROUP BY ALL
HAVING count(DISTINCT group_id) = 1
