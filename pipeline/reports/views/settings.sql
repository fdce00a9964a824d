-- The topics' own configurations that reports need, the latest ones in the metadata log; null: not set for the topic.
SELECT topic, max(if(name = 'cleanup.policy', value, NULL)) AS cleanup_policy,
       max(if(name = 'retention.ms', try_cast(value AS BIGINT), NULL)) AS retention_ms,
       max(if(name = 'retention.bytes', try_cast(value AS BIGINT), NULL)) AS retention_bytes,
       max(if(name = 'min.compaction.lag.ms', try_cast(value AS BIGINT), NULL)) AS min_compaction_lag_ms,
       max(if(name = 'min.cleanable.dirty.ratio', try_cast(value AS DOUBLE), NULL)) AS min_cleanable_dirty_ratio
FROM (SELECT topic, name, max_by(value, offset) AS value FROM topic_settings GROUP BY ALL)
GROUP BY topic
