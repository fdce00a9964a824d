-- title: the log ends within a batch
-- severity: warning
-- The last bytes of the newest segment are the beginning of a batch: the machine stopped while it was written, or it is being written now.
-- A broker truncates it when it starts; it had not been acknowledged, unless nothing was ever synced. Zeros at the end of a preallocated
-- segment do not count, nor do those of a topic whose settings are elsewhere: of brokers with ZooKeeper, or without the metadata log.
SELECT ordered.directory, topic, partition, place AS offset, damage, segment, position, size
FROM ordered JOIN partitions USING (directory, topic, partition)
WHERE damage_kind = 'torn' AND segment_base = last_segment_base
  AND NOT (damage LIKE '%of zeros' AND (topic NOT IN (
    SELECT coalesce(get_json_object(record, '$.name'), '') FROM state_metadata created WHERE type = 'TopicRecord')
  OR topic IN (
    SELECT coalesce(get_json_object(record, '$.resource_name'), '') FROM state_metadata setting WHERE type = 'ConfigRecord'
      AND get_json_object(record, '$.name') = 'preallocate' AND lower(get_json_object(record, '$.value')) LIKE '%true%')))
