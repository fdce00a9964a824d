"""Broker settings of tiered storage (core appendix 3). Described and validated, but without effect."""

from broker.settings.checks import at_least, between, filled
from broker.settings.model import BOOLEAN, CLUSTER, DOUBLE, INT, LONG, MAX_LONG, STRING, WHEN_SET, Row

ROWS: tuple[Row, ...] = (
    Row("follower.fetch.last.tiered.offset.enable", BOOLEAN, False, mode=CLUSTER),
    Row("log.remote.copy.lag.bytes", LONG, -1, at_least(-1), CLUSTER),
    Row("log.remote.copy.lag.ms", LONG, 0, at_least(-1), CLUSTER),
    Row("remote.fetch.max.wait.ms", INT, 500, at_least(1), CLUSTER),
    Row("remote.list.offsets.request.timeout.ms", LONG, 30_000, at_least(1), CLUSTER),
    Row("remote.log.index.file.cache.total.size.bytes", LONG, 1_073_741_824, at_least(1), CLUSTER),
    Row("remote.log.index.file.cache.ttl.ms", LONG, 900_000, at_least(-1), visibility=WHEN_SET),
    Row("remote.log.manager.copier.thread.pool.size", INT, 10, at_least(1), CLUSTER),
    Row("remote.log.manager.copy.max.bytes.per.second", LONG, MAX_LONG, at_least(1), CLUSTER),
    Row("remote.log.manager.copy.quota.window.num", INT, 11, at_least(1)),
    Row("remote.log.manager.copy.quota.window.size.seconds", INT, 1, at_least(1)),
    Row("remote.log.manager.expiration.thread.pool.size", INT, 10, at_least(1), CLUSTER),
    Row("remote.log.manager.fetch.max.bytes.per.second", LONG, MAX_LONG, at_least(1), CLUSTER),
    Row("remote.log.manager.fetch.quota.window.num", INT, 11, at_least(1)),
    Row("remote.log.manager.fetch.quota.window.size.seconds", INT, 1, at_least(1)),
    Row("remote.log.manager.follower.thread.pool.size", INT, 2, at_least(1), CLUSTER),
    Row("remote.log.manager.task.interval.ms", LONG, 30_000, at_least(1)),
    Row("remote.log.manager.task.retry.backoff.max.ms", LONG, 30_000, at_least(1), visibility=WHEN_SET),
    Row("remote.log.manager.task.retry.backoff.ms", LONG, 500, at_least(1), visibility=WHEN_SET),
    Row("remote.log.manager.task.retry.jitter", DOUBLE, 0.2, between(0, 0.5), visibility=WHEN_SET),
    Row("remote.log.manager.thread.pool.size", INT, 2, at_least(1)),
    Row("remote.log.metadata.custom.metadata.max.bytes", INT, 128, at_least(0)),
    Row(
        "remote.log.metadata.manager.class.name",
        STRING,
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
        filled,
    ),
    Row("remote.log.metadata.manager.class.path", STRING, None),
    Row("remote.log.metadata.manager.impl.prefix", STRING, "rlmm.config.", filled),
    Row("remote.log.metadata.manager.listener.name", STRING, None, filled),
    Row("remote.log.reader.max.pending.tasks", INT, 100, at_least(1)),
    Row("remote.log.reader.threads", INT, 10, at_least(1), CLUSTER),
    Row("remote.log.storage.manager.class.name", STRING, None, filled),
    Row("remote.log.storage.manager.class.path", STRING, None),
    Row("remote.log.storage.manager.impl.prefix", STRING, "rsm.config.", filled),
    Row("remote.log.storage.system.enable", BOOLEAN, False),
)
