"""Broker settings of transactions and idempotent producers (core appendix 3, transactions B.10)."""

from broker.settings.checks import at_least
from broker.settings.model import BOOLEAN, CLUSTER, INT, SHORT, WHEN_SET, Row

ROWS: tuple[Row, ...] = (
    Row("add.partitions.to.txn.retry.backoff.max.ms", INT, 100, at_least(0)),
    Row("add.partitions.to.txn.retry.backoff.ms", INT, 20, at_least(1)),
    Row("producer.id.expiration.check.interval.ms", INT, 600_000, at_least(1), visibility=WHEN_SET),
    Row("producer.id.expiration.ms", INT, 86_400_000, at_least(1), CLUSTER),
    Row("transaction.abort.timed.out.transaction.cleanup.interval.ms", INT, 10_000, at_least(1)),
    Row("transaction.max.timeout.ms", INT, 900_000, at_least(1)),
    Row("transaction.partition.verification.enable", BOOLEAN, True, mode=CLUSTER),
    Row("transaction.remove.expired.transaction.cleanup.interval.ms", INT, 3_600_000, at_least(1)),
    Row("transaction.state.log.load.buffer.size", INT, 5_242_880, at_least(1)),
    Row("transaction.state.log.min.isr", INT, 2, at_least(1)),
    Row("transaction.state.log.num.partitions", INT, 50, at_least(1)),
    Row("transaction.state.log.replication.factor", SHORT, 3, at_least(1)),
    Row("transaction.state.log.segment.bytes", INT, 104_857_600, at_least(1)),
    Row("transaction.two.phase.commit.enable", BOOLEAN, False),
    Row("transactional.id.expiration.ms", INT, 604_800_000, at_least(1)),
)
