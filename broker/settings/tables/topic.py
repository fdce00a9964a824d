"""Topic settings and the broker settings that supply their defaults (core appendix 2)."""

from broker.settings.checks import ValidList, at_least, between, gzip_level, one_of, throttled_replicas
from broker.settings.model import BOOLEAN, DOUBLE, INT, LIST, LONG, MAX_LONG, STRING, WHEN_SET, Row, Synonym
from storage.log.large_batches import MOST_DECOMPRESSED_BYTES

MINUTE = 60_000
HOUR = 3_600_000

ROWS: tuple[Row, ...] = (
    Row("cleanup.policy", LIST, ("delete",), ValidList("compact", "delete"), synonyms=(Synonym("log.cleanup.policy"),)),
    Row("compression.gzip.level", INT, -1, gzip_level, synonyms=(Synonym("compression.gzip.level"),)),
    Row("compression.lz4.level", INT, 9, between(1, 17), synonyms=(Synonym("compression.lz4.level"),)),
    Row(
        "compression.type",
        STRING,
        "producer",
        one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        synonyms=(Synonym("compression.type"),),
    ),
    Row("compression.zstd.level", INT, 3, between(-131_072, 22), synonyms=(Synonym("compression.zstd.level"),)),
    Row("delete.retention.ms", LONG, 86_400_000, at_least(0), synonyms=(Synonym("log.cleaner.delete.retention.ms"),)),
    Row("errors.deadletterqueue.group.enable", BOOLEAN, False),
    Row("file.delete.delay.ms", LONG, 60_000, at_least(0), synonyms=(Synonym("log.segment.delete.delay.ms"),)),
    Row("flush.messages", LONG, MAX_LONG, at_least(1), synonyms=(Synonym("log.flush.interval.messages"),)),
    Row(
        "flush.ms",
        LONG,
        MAX_LONG,
        at_least(0),
        synonyms=(Synonym("log.flush.interval.ms"), Synonym("log.flush.scheduler.interval.ms")),
    ),
    Row("follower.replication.throttled.replicas", LIST, (), throttled_replicas),
    Row("index.interval.bytes", INT, 4096, at_least(0), synonyms=(Synonym("log.index.interval.bytes"),)),
    Row("internal.segment.bytes", INT, None, visibility=WHEN_SET),
    Row("leader.replication.throttled.replicas", LIST, (), throttled_replicas),
    Row("local.retention.bytes", LONG, -2, at_least(-2), synonyms=(Synonym("log.local.retention.bytes"),)),
    Row("local.retention.ms", LONG, -2, at_least(-2), synonyms=(Synonym("log.local.retention.ms"),)),
    Row("max.compaction.lag.ms", LONG, MAX_LONG, at_least(1), synonyms=(Synonym("log.cleaner.max.compaction.lag.ms"),)),
    Row(
        "max.decompressed.message.bytes",
        INT,
        MOST_DECOMPRESSED_BYTES,
        between(1, MOST_DECOMPRESSED_BYTES),
        synonyms=(Synonym("max.decompressed.message.bytes"),),
    ),
    Row("max.message.bytes", INT, 1_048_588, at_least(0), synonyms=(Synonym("message.max.bytes"),)),
    Row(
        "message.timestamp.after.max.ms",
        LONG,
        3_600_000,
        at_least(0),
        synonyms=(Synonym("log.message.timestamp.after.max.ms"),),
    ),
    Row(
        "message.timestamp.before.max.ms",
        LONG,
        MAX_LONG,
        at_least(0),
        synonyms=(Synonym("log.message.timestamp.before.max.ms"),),
    ),
    Row(
        "message.timestamp.type",
        STRING,
        "CreateTime",
        one_of("CreateTime", "LogAppendTime"),
        synonyms=(Synonym("log.message.timestamp.type"),),
    ),
    Row(
        "min.cleanable.dirty.ratio", DOUBLE, 0.5, between(0, 1), synonyms=(Synonym("log.cleaner.min.cleanable.ratio"),)
    ),
    Row("min.compaction.lag.ms", LONG, 0, at_least(0), synonyms=(Synonym("log.cleaner.min.compaction.lag.ms"),)),
    Row("min.insync.replicas", INT, 1, at_least(1), synonyms=(Synonym("min.insync.replicas"),)),
    Row("preallocate", BOOLEAN, False, synonyms=(Synonym("log.preallocate"),)),
    Row("remote.copy.lag.bytes", LONG, -1, at_least(-1), synonyms=(Synonym("log.remote.copy.lag.bytes"),)),
    Row("remote.copy.lag.ms", LONG, 0, at_least(-1), synonyms=(Synonym("log.remote.copy.lag.ms"),)),
    Row("remote.log.copy.disable", BOOLEAN, False),
    Row("remote.log.delete.on.disable", BOOLEAN, False),
    Row("remote.storage.enable", BOOLEAN, False),
    Row("retention.bytes", LONG, -1, synonyms=(Synonym("log.retention.bytes"),)),
    Row(
        "retention.ms",
        LONG,
        604_800_000,
        at_least(-1),
        synonyms=(
            Synonym("log.retention.ms"),
            Synonym("log.retention.minutes", MINUTE),
            Synonym("log.retention.hours", HOUR),
        ),
    ),
    Row("segment.bytes", INT, 1_073_741_824, at_least(1_048_576), synonyms=(Synonym("log.segment.bytes"),)),
    Row("segment.index.bytes", INT, 10_485_760, at_least(4), synonyms=(Synonym("log.index.size.max.bytes"),)),
    Row(
        "segment.jitter.ms",
        LONG,
        0,
        at_least(0),
        synonyms=(Synonym("log.roll.jitter.ms"), Synonym("log.roll.jitter.hours", HOUR)),
    ),
    Row(
        "segment.ms", LONG, 604_800_000, at_least(1), synonyms=(Synonym("log.roll.ms"), Synonym("log.roll.hours", HOUR))
    ),
    Row("unclean.leader.election.enable", BOOLEAN, False, synonyms=(Synonym("unclean.leader.election.enable"),)),
)
