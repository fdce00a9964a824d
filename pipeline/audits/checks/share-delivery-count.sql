-- title: a record that was delivered more often than allowed
-- severity: warning
-- The record's delivery count is above the group's `share.delivery.count.limit`, if the metadata has it (otherwise above 10, the highest
-- that a broker may have). A limit that was lowered later can be the reason.
SELECT '__share_group_state' AS topic, partition, offset, share_states.group_id, topic_id, shared_partition,
       array_max(transform(batches, each -> each.delivery_count)) AS delivery_count, coalesce(allowed, 10) AS allowed
FROM share_states
LEFT JOIN (
  SELECT get_json_object(record, '$.resource_name') AS group_id,
         greatest(5, max(try_cast(get_json_object(record, '$.value') AS INT))) AS allowed
  FROM state_metadata WHERE type = 'ConfigRecord' AND get_json_object(record, '$.name') = 'share.delivery.count.limit'
  GROUP BY 1
) limits ON limits.group_id = share_states.group_id
WHERE array_max(transform(batches, each -> each.delivery_count)) > coalesce(allowed, 10)
