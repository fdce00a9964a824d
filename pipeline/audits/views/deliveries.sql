-- The records that a group received, one row per Fetch and partition with records; with what the group had received and had committed
-- before.
SELECT fetches.*, group_id,
       max(delivered_to) OVER (PARTITION BY fetches.run, fetches.era, group_id, topic, partition ORDER BY id
                               ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS given_before_to
FROM fetches JOIN group_clients USING (run, era, client_host, client_id)
WHERE batches IS NOT NULL AND coalesce(replica_id, -1) < 0
