-- The settings of topics (resource type 2), client metrics (16) and groups (32) that any release since 3.3 has, and the values that it
-- accepts, by kind of value.
SELECT resource_type, name, kind, least, most, allowed
FROM (
  SELECT 2 AS resource_type, 'list' AS kind, CAST(NULL AS BIGINT) AS least, CAST(NULL AS BIGINT) AS most,
         'compact,delete' AS allowed, 'cleanup.policy' AS names
  UNION ALL SELECT 2, 'text', NULL, NULL, 'uncompressed,zstd,lz4,snappy,gzip,producer', 'compression.type'
  UNION ALL SELECT 2, 'text', NULL, NULL, 'CreateTime,LogAppendTime', 'message.timestamp.type'
  UNION ALL SELECT 2, 'boolean', NULL, NULL, NULL, 'errors.deadletterqueue.group.enable message.downconversion.enable preallocate
    remote.log.copy.disable remote.log.delete.on.disable remote.storage.enable unclean.leader.election.enable'
  UNION ALL SELECT 2, 'double', 0, 1, NULL, 'min.cleanable.dirty.ratio'
  UNION ALL SELECT 2, 'number', -131072, 22, NULL, 'compression.zstd.level'
  UNION ALL SELECT 2, 'number', 1, 17, NULL, 'compression.lz4.level'
  UNION ALL SELECT 2, 'pattern', NULL, NULL, '^([+]?0*[1-9]|-0*1)$', 'compression.gzip.level'
  UNION ALL SELECT 2, 'number', 0, 2147483647, NULL, 'index.interval.bytes max.message.bytes'
  UNION ALL SELECT 2, 'number', 1, 2147483647, NULL, 'min.insync.replicas'
  UNION ALL SELECT 2, 'number', 1, 2147483639, NULL, 'max.decompressed.message.bytes'
  UNION ALL SELECT 2, 'number', 14, 2147483647, NULL, 'segment.bytes'
  UNION ALL SELECT 2, 'number', 4, 2147483647, NULL, 'segment.index.bytes'
  UNION ALL SELECT 2, 'number', NULL, NULL, NULL, 'retention.bytes'
  UNION ALL SELECT 2, 'number', -2, NULL, NULL, 'local.retention.bytes local.retention.ms'
  UNION ALL SELECT 2, 'number', -1, NULL, NULL, 'remote.copy.lag.bytes remote.copy.lag.ms retention.ms'
  UNION ALL SELECT 2, 'number', 0, NULL, NULL, 'delete.retention.ms file.delete.delay.ms flush.ms message.timestamp.after.max.ms
    message.timestamp.before.max.ms min.compaction.lag.ms segment.jitter.ms'
  UNION ALL SELECT 2, 'number', 1, NULL, NULL, 'flush.messages max.compaction.lag.ms segment.ms'
  UNION ALL SELECT 16, 'number', 100, 3600000, NULL, 'interval.ms'
  UNION ALL SELECT 32, 'text', NULL, NULL, 'read_committed,read_uncommitted', 'share.isolation.level'
  UNION ALL SELECT 32, 'start', NULL, NULL, 'earliest,latest', 'share.auto.offset.reset'
  UNION ALL SELECT 32, 'distinct', NULL, NULL, NULL, 'streams.rack.aware.assignment.tags'
  UNION ALL SELECT 32, 'boolean', NULL, NULL, NULL, 'consumer.assignor.offload.enable errors.deadletterqueue.copy.record.enable share.assignor.offload.enable
    share.renew.acknowledge.enable streams.assignor.offload.enable'
  UNION ALL SELECT 32, 'number', 0, 2147483647, NULL, 'consumer.assignment.interval.ms share.assignment.interval.ms
    streams.assignment.interval.ms streams.initial.rebalance.delay.ms streams.num.standby.replicas streams.num.warmup.replicas'
  UNION ALL SELECT 32, 'number', 0, NULL, NULL, 'streams.acceptable.recovery.lag'
  UNION ALL SELECT 32, 'number', 1, 2147483647, NULL, 'consumer.heartbeat.interval.ms consumer.session.timeout.ms
    share.heartbeat.interval.ms share.session.timeout.ms streams.heartbeat.interval.ms streams.session.timeout.ms
    streams.task.offset.interval.ms'
  UNION ALL SELECT 32, 'number', 2, 2147483647, NULL, 'share.delivery.count.limit'
  UNION ALL SELECT 32, 'number', 100, 2147483647, NULL, 'share.partition.max.record.locks'
  UNION ALL SELECT 32, 'number', 1000, 2147483647, NULL, 'share.record.lock.duration.ms'
  UNION ALL SELECT 2, 'any', NULL, NULL, NULL, 'follower.replication.throttled.replicas internal.segment.bytes
    leader.replication.throttled.replicas message.format.version message.timestamp.difference.max.ms'
  UNION ALL SELECT 16, 'any', NULL, NULL, NULL, 'match metrics'
  UNION ALL SELECT 32, 'any', NULL, NULL, NULL, 'errors.deadletterqueue.topic.name streams.assignor.name'
) CROSS JOIN LATERAL explode(split(regexp_replace(names, '[^a-z0-9.]+', ' '), ' ')) AS name_rows(name)
