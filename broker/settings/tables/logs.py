"""Broker settings of topics and logs: the defaults that topics inherit, cleaning, flushing (core appendix 3)."""

from broker.settings.checks import (
    ANY_LIST,
    FILLED_LIST,
    ValidList,
    at_least,
    between,
    gzip_level,
    one_of,
)
from broker.settings.model import BOOLEAN, CLUSTER, DOUBLE, INT, LIST, LONG, MAX_LONG, PER_BROKER, STRING, WHEN_SET, Row
from storage.log.large_batches import MOST_DECOMPRESSED_BYTES

MAX_DOUBLE = 1.7976931348623157e308  # Double.MAX_VALUE

ROWS: tuple[Row, ...] = (
    Row("auto.create.topics.enable", BOOLEAN, True),
    Row("compression.gzip.level", INT, -1, gzip_level, CLUSTER),
    Row("compression.lz4.level", INT, 9, between(1, 17), CLUSTER),
    Row(
        "compression.type",
        STRING,
        "producer",
        one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        CLUSTER,
    ),
    Row("compression.zstd.level", INT, 3, between(-131_072, 22), CLUSTER),
    Row("cordoned.log.dirs", LIST, (), ANY_LIST, PER_BROKER),
    Row("default.replication.factor", INT, 1),
    Row("delete.topic.enable", BOOLEAN, True),
    Row("log.cleaner.backoff.ms", LONG, 15_000, at_least(0), CLUSTER),
    Row("log.cleaner.dedupe.buffer.size", LONG, 134_217_728, mode=CLUSTER),
    Row("log.cleaner.delete.retention.ms", LONG, 86_400_000, at_least(0), CLUSTER),
    Row("log.cleaner.enable", BOOLEAN, True),
    Row("log.cleaner.io.buffer.load.factor", DOUBLE, 0.9, mode=CLUSTER),
    Row("log.cleaner.io.buffer.size", INT, 524_288, at_least(0), CLUSTER),
    Row("log.cleaner.io.max.bytes.per.second", DOUBLE, MAX_DOUBLE, mode=CLUSTER),
    Row("log.cleaner.max.compaction.lag.ms", LONG, MAX_LONG, at_least(1), CLUSTER),
    Row("log.cleaner.min.cleanable.ratio", DOUBLE, 0.5, between(0, 1), CLUSTER),
    Row("log.cleaner.min.compaction.lag.ms", LONG, 0, at_least(0), CLUSTER),
    Row("log.cleaner.threads", INT, 1, at_least(0), CLUSTER),
    Row("log.cleanup.policy", LIST, ("delete",), ValidList("compact", "delete"), CLUSTER),
    Row("log.dir", LIST, ("/tmp/kafka-logs",), FILLED_LIST),  # noqa: S108 - Kafka's default; nothing is written there
    Row("log.dir.failure.timeout.ms", LONG, 30_000, at_least(1)),
    Row("log.dirs", LIST, None, FILLED_LIST),
    Row("log.flush.interval.messages", LONG, MAX_LONG, at_least(1), CLUSTER),
    Row("log.flush.interval.ms", LONG, None, mode=CLUSTER),
    Row("log.flush.offset.checkpoint.interval.ms", INT, 60_000, at_least(0)),
    Row("log.flush.scheduler.interval.ms", LONG, MAX_LONG),
    Row("log.flush.start.offset.checkpoint.interval.ms", INT, 60_000, at_least(0)),
    Row("log.index.interval.bytes", INT, 4096, at_least(0), CLUSTER),
    Row("log.index.size.max.bytes", INT, 10_485_760, at_least(4), CLUSTER),
    # Internal in Kafka. Listed here, because tools that configure test clusters expect it.
    Row("log.initial.task.delay.ms", LONG, 30_000, at_least(0)),
    Row("log.local.retention.bytes", LONG, -2, at_least(-2), CLUSTER),
    Row("log.local.retention.ms", LONG, -2, at_least(-2), CLUSTER),
    Row("log.message.timestamp.after.max.ms", LONG, 3_600_000, at_least(0), CLUSTER),
    Row("log.message.timestamp.before.max.ms", LONG, MAX_LONG, at_least(0), CLUSTER),
    Row("log.message.timestamp.type", STRING, "CreateTime", one_of("CreateTime", "LogAppendTime"), CLUSTER),
    Row("log.preallocate", BOOLEAN, False, mode=CLUSTER),
    Row("log.retention.bytes", LONG, -1, mode=CLUSTER),
    Row("log.retention.check.interval.ms", LONG, 300_000, at_least(1)),
    Row("log.retention.hours", INT, 168),
    Row("log.retention.minutes", INT, None),
    Row("log.retention.ms", LONG, None, mode=CLUSTER),
    Row("log.roll.hours", INT, 168, at_least(1)),
    Row("log.roll.jitter.hours", INT, 0, at_least(0)),
    Row("log.roll.jitter.ms", LONG, None, mode=CLUSTER),
    Row("log.roll.ms", LONG, None, mode=CLUSTER),
    Row("log.segment.bytes", INT, 1_073_741_824, at_least(1_048_576), CLUSTER),
    Row("log.segment.delete.delay.ms", LONG, 60_000, at_least(0), CLUSTER),
    Row(
        "max.decompressed.message.bytes",
        INT,
        MOST_DECOMPRESSED_BYTES,
        between(1, MOST_DECOMPRESSED_BYTES),
        CLUSTER,
    ),
    Row("message.max.bytes", INT, 1_048_588, at_least(0), CLUSTER),
    Row("min.insync.replicas", INT, 1, at_least(1), CLUSTER),
    Row("num.partitions", INT, 1, at_least(1)),
    Row("num.recovery.threads.per.data.dir", INT, 2, at_least(1), CLUSTER),
    Row("unclean.leader.election.enable", BOOLEAN, False, mode=CLUSTER),
    Row("unclean.leader.election.interval.ms", LONG, 300_000, at_least(1), visibility=WHEN_SET),
    # Understudy's own: in Kafka, Metadata first returns UNKNOWN_TOPIC_OR_PARTITION for a topic that it creates.
    Row("understudy.auto.create.topics.at.once", BOOLEAN, False, visibility=WHEN_SET),
    # Understudy's own: a client's first Fetch has only those of its partitions whose offsets have arrived.
    Row("understudy.first.fetch.max.wait.ms", INT, -1, at_least(-1), visibility=WHEN_SET),
    # Understudy's own: Kafka limits only single records.
    Row("understudy.max.decompressed.batch.bytes", LONG, MOST_DECOMPRESSED_BYTES, at_least(1), visibility=WHEN_SET),
    # Understudy's own: when appended records are flushed: after every append, when a segment is closed, or never.
    Row("understudy.sync", STRING, "roll", one_of("every", "roll", "never"), visibility=WHEN_SET),
)
