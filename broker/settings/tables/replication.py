"""Broker settings of replication (core appendix 3)."""

from broker.settings.checks import at_least
from broker.settings.model import CLUSTER, INT, LONG, STRING, WHEN_SET, Row

ROWS: tuple[Row, ...] = (
    Row("alter.log.dirs.replication.quota.window.num", INT, 11, at_least(1)),
    Row("alter.log.dirs.replication.quota.window.size.seconds", INT, 1, at_least(1)),
    # The three rates are unlimited until set, and then only as dynamic configs (core appendix 3).
    Row("follower.replication.throttled.rate", LONG, None, at_least(0), CLUSTER, visibility=WHEN_SET),
    Row("leader.imbalance.check.interval.seconds", LONG, 300, at_least(1)),
    Row("leader.replication.throttled.rate", LONG, None, at_least(0), CLUSTER, visibility=WHEN_SET),
    Row("num.replica.alter.log.dirs.threads", INT, None),
    Row("num.replica.fetchers", INT, 1, at_least(1), CLUSTER),
    Row("replica.alter.log.dirs.io.max.bytes.per.second", LONG, None, at_least(0), CLUSTER, visibility=WHEN_SET),
    Row("replica.fetch.backoff.ms", INT, 1000, at_least(0)),
    Row("replica.fetch.max.bytes", INT, 1_048_576, at_least(0)),
    Row("replica.fetch.min.bytes", INT, 1),
    Row("replica.fetch.response.max.bytes", INT, 10_485_760, at_least(0)),
    Row("replica.fetch.wait.max.ms", INT, 500),
    Row("replica.high.watermark.checkpoint.interval.ms", LONG, 5000),
    Row("replica.lag.time.max.ms", LONG, 30_000),
    Row("replica.selector.class", STRING, None),
    Row("replica.socket.receive.buffer.bytes", INT, 65_536),
    Row("replica.socket.timeout.ms", INT, 30_000),
    Row("replication.quota.window.num", INT, 11, at_least(1)),
    Row("replication.quota.window.size.seconds", INT, 1, at_least(1)),
)
