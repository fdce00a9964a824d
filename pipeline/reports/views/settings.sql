-- The topics' own settings that reports need, as the metadata log has them last; null: the topic has none of its own.
SELECT topic, max(if(name = 'cleanup.policy', value, NULL)) AS cleanup_policy,
       max(if(name = 'retention.ms', try_cast(value AS BIGINT), NULL)) AS retention_ms,
       max(if(name = 'retention.bytes', try_cast(value AS BIGINT), NULL)) AS retention_bytes,
       max(if(name = 'min.compaction.lag.ms', try_cast(value AS BIGINT), NULL)) AS min_compaction_lag_ms,
       max(if(name = 'min.cleanable.dirty.ratio', try_cast(value AS DOUBLE), NULL)) AS min_cleanable_dirty_ratio
FROM (SELECT get_json_object(record, '$.resource_name') AS topic, get_json_object(record, '$.name') AS name,
             max_by(get_json_object(record, '$.value'), offset) AS value
      FROM state_metadata WHERE type = 'ConfigRecord' AND get_json_object(record, '$.resource_type') = '2'
      GROUP BY ALL)
GROUP BY topic
