"""Settings of one group, the resource type GROUP (core appendix 2, groups 0.7)."""

from broker.settings.checks import at_least, one_of, share_offset_reset, without_blanks
from broker.settings.model import BOOLEAN, INT, LIST, LONG, STRING, WHEN_SET, Row, Synonym

ROWS: tuple[Row, ...] = (
    Row("errors.deadletterqueue.copy.record.enable", BOOLEAN, False),
    Row("errors.deadletterqueue.topic.name", STRING, ""),
    Row(
        "share.assignor.offload.enable",
        BOOLEAN,
        True,
        synonyms=(Synonym("group.share.assignor.offload.enable"),),
        visibility=WHEN_SET,
    ),
    Row("streams.assignor.name", STRING, "sticky", synonyms=(Synonym("group.streams.assignors"),)),
    Row(
        "streams.assignor.offload.enable",
        BOOLEAN,
        True,
        synonyms=(Synonym("group.streams.assignor.offload.enable"),),
        visibility=WHEN_SET,
    ),
    Row(
        "streams.rack.aware.assignment.tags",
        LIST,
        (),
        without_blanks,
        synonyms=(Synonym("group.streams.rack.aware.assignment.tags"),),
    ),
    Row(
        "consumer.assignment.interval.ms",
        INT,
        1000,
        at_least(0),
        synonyms=(Synonym("group.consumer.assignment.interval.ms"),),
    ),
    Row(
        "consumer.assignor.offload.enable",
        BOOLEAN,
        True,
        synonyms=(Synonym("group.consumer.assignor.offload.enable"),),
        visibility=WHEN_SET,
    ),
    Row(
        "consumer.heartbeat.interval.ms",
        INT,
        5000,
        at_least(1),
        synonyms=(Synonym("group.consumer.heartbeat.interval.ms"),),
    ),
    Row(
        "consumer.session.timeout.ms",
        INT,
        45_000,
        at_least(1),
        synonyms=(Synonym("group.consumer.session.timeout.ms"),),
    ),
    Row(
        "share.assignment.interval.ms",
        INT,
        1000,
        at_least(0),
        synonyms=(Synonym("group.share.assignment.interval.ms"),),
    ),
    Row("share.auto.offset.reset", STRING, "latest", share_offset_reset),
    Row("share.delivery.count.limit", INT, 5, at_least(2), synonyms=(Synonym("group.share.delivery.count.limit"),)),
    Row(
        "share.heartbeat.interval.ms", INT, 5000, at_least(1), synonyms=(Synonym("group.share.heartbeat.interval.ms"),)
    ),
    Row("share.isolation.level", STRING, "read_uncommitted", one_of("read_committed", "read_uncommitted")),
    Row(
        "share.partition.max.record.locks",
        INT,
        2000,
        at_least(100),
        synonyms=(Synonym("group.share.partition.max.record.locks"),),
    ),
    Row(
        "share.record.lock.duration.ms",
        INT,
        30_000,
        at_least(1000),
        synonyms=(Synonym("group.share.record.lock.duration.ms"),),
    ),
    Row("share.renew.acknowledge.enable", BOOLEAN, True),
    Row("share.session.timeout.ms", INT, 45_000, at_least(1), synonyms=(Synonym("group.share.session.timeout.ms"),)),
    Row(
        "streams.assignment.interval.ms",
        INT,
        1000,
        at_least(0),
        synonyms=(Synonym("group.streams.assignment.interval.ms"),),
    ),
    Row(
        "streams.heartbeat.interval.ms",
        INT,
        5000,
        at_least(1),
        synonyms=(Synonym("group.streams.heartbeat.interval.ms"),),
    ),
    Row(
        "streams.initial.rebalance.delay.ms",
        INT,
        3000,
        at_least(0),
        synonyms=(Synonym("group.streams.initial.rebalance.delay.ms"),),
    ),
    Row("streams.num.standby.replicas", INT, 0, at_least(0), synonyms=(Synonym("group.streams.num.standby.replicas"),)),
    Row(
        "streams.session.timeout.ms", INT, 45_000, at_least(1), synonyms=(Synonym("group.streams.session.timeout.ms"),)
    ),
    Row(
        "streams.acceptable.recovery.lag",
        LONG,
        10_000,
        at_least(0),
        synonyms=(Synonym("group.streams.acceptable.recovery.lag"),),
        visibility=WHEN_SET,
    ),
    Row(
        "streams.num.warmup.replicas",
        INT,
        2,
        at_least(0),
        synonyms=(Synonym("group.streams.num.warmup.replicas"),),
        visibility=WHEN_SET,
    ),
    Row(
        "streams.task.offset.interval.ms",
        INT,
        60_000,
        at_least(1),
        synonyms=(Synonym("group.streams.task.offset.interval.ms"),),
        visibility=WHEN_SET,
    ),
)
