-- The positions of readers over time. Groups: their committed offsets, in a transaction from its commit on. Clients without a group, such
-- as Spark's: the offset that they requested.
WITH ended AS (
  SELECT *, last_value(ending) IGNORE NULLS OVER (PARTITION BY run, era, transactional_id ORDER BY id DESC
                                           ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS end_of_it
  FROM (SELECT run, era, id, transactional_id, group_id, topic, partition, committed_offset,
               NULL AS ending
        FROM commits WHERE api = 'TxnOffsetCommit' AND error = 'NONE'
        UNION ALL
        SELECT run, era, id, get_json_object(request, '$.transactional_id'), NULL, NULL, NULL, NULL,
               struct(at_us, committed)
        FROM (SELECT *, end_us AS at_us, get_json_object(request, '$.committed') = 'true' AS committed FROM calls)
        WHERE api = 'EndTxn' AND error IS NULL AND outcome = 'answered')
)
SELECT run, era, group_id AS reader, 'group' AS kind, topic, partition, end_us AS at_us, committed_offset AS position
FROM commits WHERE api = 'OffsetCommit' AND error = 'NONE'
UNION ALL
SELECT run, era, group_id, 'group', topic, partition, end_of_it.at_us, committed_offset
FROM ended WHERE group_id IS NOT NULL AND end_of_it.committed
UNION ALL
SELECT run, era, client_id, 'client', topic, partition, ts_us, fetch_offset
FROM fetches ANTI JOIN group_clients USING (run, era, client_host, client_id)
WHERE fetch_offset >= 0 AND coalesce(replica_id, -1) < 0
