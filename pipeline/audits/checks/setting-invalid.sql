-- title: a setting that no broker accepts
-- severity: error
-- The metadata has a value for a topic, group or client metrics configuration that Kafka rejects (ConfigDef; what any version since 3.3
-- accepts is accepted here), or a configuration of an unknown resource type. Brokers use their defaults instead, or cannot load the log.
-- Unknown names may be those of a later version.
WITH rules AS (
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
  ) CROSS JOIN LATERAL explode(split(regexp_replace(names, '[^a-z0-9.]+', ' '), ' ')) AS name_rows(name)
),
given AS (
  SELECT offset, fields.resource_type AS resource_type, fields.resource_name AS resource_name, fields.name AS name,
         fields.value AS value, regexp_replace(fields.value, '^[^!-~]+|[^!-~]+$', '') AS text
  FROM (SELECT offset, from_json(record, 'resource_type INT, resource_name STRING, name STRING, value STRING') AS fields
        FROM state_metadata WHERE type = 'ConfigRecord')
),
durations AS (  -- as java.time.Duration reads them: each number is a long
  SELECT given.*, regexp_extract(text, form, 1) AS sign, regexp_extract(text, form, 2) AS days, regexp_extract(text, form, 3) AS hours,
         regexp_extract(text, form, 4) AS minutes, regexp_extract(text, form, 5) AS seconds, regexp_extract(text, form, 6) AS fraction,
         regexp_like(text, form) AND NOT regexp_like(text, '[PpTt]$') AS is_duration
  FROM (SELECT given.*, concat('^by_duration:([+-]?)[Pp](?:([+-]?[0-9]+)[Dd])?(?:[Tt](?:([+-]?[0-9]+)[Hh])?(?:([+-]?[0-9]+)[Mm])?',
                               '(?:([+-]?[0-9]+)(?:[.,]([0-9]{0,9}))?[Ss])?)?$') AS form FROM given) given
),
judged AS (
  SELECT given.*, CASE sign WHEN '-' THEN -1 ELSE 1 END * (CASE days WHEN '' THEN 0 ELSE try_cast(days AS BIGINT) END * 86400E0
           + CASE hours WHEN '' THEN 0 ELSE try_cast(hours AS BIGINT) END * 3600E0 + CASE minutes WHEN '' THEN 0 ELSE try_cast(minutes AS BIGINT) END * 60E0
           + CASE seconds WHEN '' THEN 0 ELSE try_cast(seconds AS BIGINT) END * 1E0
           + CASE WHEN seconds LIKE '-%' THEN -1 ELSE 1 END * try_cast(concat('0', fraction, '0') AS BIGINT) / power(10E0, length(fraction) + 1)) AS behind_s
  FROM durations given
)
SELECT '__cluster_metadata' AS topic, 0 AS partition, offset, given.resource_type, resource_name, given.name, value
FROM judged given LEFT JOIN rules ON rules.resource_type = given.resource_type AND rules.name = given.name
WHERE given.resource_type NOT IN (2, 4, 8, 16, 32)
  OR (value IS NOT NULL AND CASE kind
    WHEN 'boolean' THEN lower(text) NOT IN ('true', 'false')
    WHEN 'text' THEN NOT array_contains(split(allowed, ','), text)
    WHEN 'pattern' THEN NOT regexp_like(text, allowed)
    WHEN 'list' THEN text <> '' AND size(filter(split(text, ','), each -> NOT array_contains(split(allowed, ','), trim(each)))) > 0
    WHEN 'start' THEN NOT array_contains(split(allowed, ','), text)
      AND NOT (is_duration AND coalesce(behind_s BETWEEN 0 AND 9223372036854775807, false))
    WHEN 'distinct' THEN text <> '' AND (size(filter(split(text, ','), each -> trim(each) = '')) > 0
      OR size(array_distinct(transform(split(text, ','), each -> trim(each)))) < size(split(text, ',')))
    WHEN 'double' THEN try_cast(regexp_replace(text, '[fFdD]$', '') AS DOUBLE) IS NULL
      OR NOT try_cast(regexp_replace(text, '[fFdD]$', '') AS DOUBLE) BETWEEN least AND most
    WHEN 'number' THEN NOT regexp_like(text, '^[+-]?[0-9]+$') OR try_cast(text AS BIGINT) IS NULL
      OR try_cast(text AS BIGINT) < least OR try_cast(text AS BIGINT) > most
    ELSE false END)
