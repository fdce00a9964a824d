"""Settings of one group: bounds, cross rules, what the coordinator uses (groups 0.7)."""

import pytest

from broker.settings import BrokerSettings, groups
from broker.settings.of_release import TODAY
from protocol.errors import ErrorCode, KafkaError

LEAST, MOST = "must be greater than or equal to", "must be less than or equal to"


@pytest.mark.parametrize(
    ("proposed", "message"),
    [
        ({"bogus": "1", "consumer.session.timeout.ms": "x"}, "Unknown group config name: bogus"),
        (
            {"consumer.session.timeout.ms": "0"},
            "Invalid value 0 for configuration consumer.session.timeout.ms: Value must be at least 1",
        ),
        (
            {"consumer.session.timeout.ms": "1"},
            f"consumer.session.timeout.ms {LEAST} group.consumer.min.session.timeout.ms",
        ),
        (
            {"consumer.session.timeout.ms": "70000"},
            f"consumer.session.timeout.ms {MOST} group.consumer.max.session.timeout.ms",
        ),
        (
            {"consumer.session.timeout.ms": "1", "consumer.heartbeat.interval.ms": "1"},
            f"consumer.heartbeat.interval.ms {LEAST} group.consumer.min.heartbeat.interval.ms",
        ),
        (
            {"share.delivery.count.limit": "11"},
            f"share.delivery.count.limit {MOST} group.share.max.delivery.count.limit",
        ),
        (
            {"share.delivery.count.limit": "20", "share.record.lock.duration.ms": "1000"},
            f"share.record.lock.duration.ms {LEAST} group.share.min.record.lock.duration.ms",
        ),
        (
            {"share.partition.max.record.locks": "5000"},
            f"share.partition.max.record.locks {MOST} group.share.max.partition.max.record.locks",
        ),
        (
            {"streams.assignment.interval.ms": "99999", "streams.num.standby.replicas": "9"},
            f"streams.num.standby.replicas {MOST} group.streams.max.standby.replicas",
        ),
        (
            {"share.isolation.level": "x"},
            (
                "Invalid value x for configuration share.isolation.level: "
                "String must be one of: read_committed, read_uncommitted"
            ),
        ),
    ],
)
def test_a_group_is_refused_settings_outside_the_brokers_bounds(proposed: dict[str, str], message: str) -> None:
    """With Kafka's messages and in its order, code 40; those of 4.3."""
    settings = BrokerSettings(1)
    settings.emulate(TODAY, bounds_as_ranges=False)
    with pytest.raises(KafkaError) as refusal:
        groups.validate(proposed, settings)
    assert (refusal.value.code, refusal.value.message) == (ErrorCode.INVALID_CONFIG, message)


@pytest.mark.parametrize(
    ("proposed", "message"),
    [
        (
            {"consumer.session.timeout.ms": "1"},
            "consumer.session.timeout.ms must be in the range 45000 to 60000 inclusive.",
        ),
        ({"share.delivery.count.limit": "11"}, "share.delivery.count.limit must be in the range 2 to 10 inclusive."),
        ({"streams.num.standby.replicas": "9"}, "streams.num.standby.replicas must be less than or equal to 2"),
        (
            {"streams.num.standby.replicas": "9", "streams.session.timeout.ms": "1"},
            "streams.session.timeout.ms must be in the range 45000 to 60000 inclusive.",
        ),
        (
            {"streams.num.warmup.replicas": "99", "streams.task.offset.interval.ms": "1"},
            "streams.task.offset.interval.ms must be greater than or equal to 15000",
        ),
        ({"streams.num.warmup.replicas": "21"}, "streams.num.warmup.replicas must be less than or equal to 20"),
        (
            {"streams.acceptable.recovery.lag": "-1"},
            "Invalid value -1 for configuration streams.acceptable.recovery.lag: Value must be at least 0",
        ),
        (
            {"streams.assignor.name": "x"},
            "streams.assignor.name 'x' is not a registered task assignor. Registered assignors are: [sticky].",
        ),
        (
            {"errors.deadletterqueue.topic.name": "__x"},
            "errors.deadletterqueue.topic.name: DLQ topic name must not start with '__'",
        ),
        (
            {"streams.rack.aware.assignment.tags": "a,"},
            "Configuration 'streams.rack.aware.assignment.tags' values must not be empty.",
        ),
        (
            {"streams.rack.aware.assignment.tags": "a,,"},
            "streams.rack.aware.assignment.tags must not contain duplicate tag keys.",
        ),
        (
            {"streams.rack.aware.assignment.tags": "a,a"},
            "streams.rack.aware.assignment.tags must not contain duplicate tag keys.",
        ),
        (
            {"consumer.session.timeout.ms": "x", "streams.rack.aware.assignment.tags": "a,a"},
            "streams.rack.aware.assignment.tags must not contain duplicate tag keys.",
        ),
        (
            {"errors.deadletterqueue.copy.record.enable": "x", "streams.num.warmup.replicas": "-1"},
            "Invalid value -1 for configuration streams.num.warmup.replicas: Value must be at least 0",
        ),
        (
            {"errors.deadletterqueue.topic.name": "__x", "streams.assignor.name": "x"},
            "streams.assignor.name 'x' is not a registered task assignor. Registered assignors are: [sticky].",
        ),
        (
            {"unknown": "1", "errors": "1", "streams.rack.aware.assignment.tags": "a,a"},
            "Unknown group config name: errors",
        ),
    ],
)
def test_since_4_4_a_refusal_has_the_bounds_themselves(proposed: dict[str, str], message: str) -> None:
    """As 4.4.0 refuses them, with its new settings."""
    with pytest.raises(KafkaError) as refusal:
        groups.validate(proposed, BrokerSettings(1))
    assert (refusal.value.code, refusal.value.message) == (ErrorCode.INVALID_CONFIG, message)


@pytest.mark.parametrize("kind", ["consumer", "share", "streams"])
def test_a_session_lasts_longer_than_a_heartbeat(kind: str) -> None:
    """Also where one of the two is the broker's."""
    settings = BrokerSettings(1, {f"group.{kind}.max.heartbeat.interval.ms": "100000"})
    groups.validate({f"{kind}.heartbeat.interval.ms": "44999"}, settings)
    with pytest.raises(KafkaError) as refusal:
        groups.validate({f"{kind}.heartbeat.interval.ms": "45000"}, settings)
    assert refusal.value.message == f"{kind}.session.timeout.ms must be greater than {kind}.heartbeat.interval.ms"
    with pytest.raises(KafkaError) as refusal:  # the name of a queue is checked last (GroupConfig.validateValues)
        groups.validate(
            {f"{kind}.heartbeat.interval.ms": "45000", "errors.deadletterqueue.topic.name": "__x"}, settings
        )
    assert refusal.value.message == f"{kind}.session.timeout.ms must be greater than {kind}.heartbeat.interval.ms"


def test_values_that_fell_out_of_the_bounds_are_held_within_them() -> None:
    """The broker's range may have changed since; what is described stays what was set (groups 0.7)."""
    bounds = {"group.share.max.delivery.count.limit": "6", "group.consumer.min.session.timeout.ms": "46000"}
    settings = BrokerSettings(1, bounds)
    stored = {"share.delivery.count.limit": "8", "consumer.session.timeout.ms": "45000"}
    values = groups.effective(stored, settings)
    assert (values["share.delivery.count.limit"], values["consumer.session.timeout.ms"]) == (6, 46000)
    assert groups.stated(stored, settings)["share.delivery.count.limit"] == 8


def test_a_setting_with_one_bound_is_held_by_it() -> None:
    """The offset interval of streams groups has a least value only, the number of warm-up tasks a largest one."""
    settings = BrokerSettings(1, {"group.streams.min.task.offset.interval.ms": "30000"})
    stored = {"streams.task.offset.interval.ms": "20000", "streams.acceptable.recovery.lag": "5000000000"}
    values = groups.effective(stored, settings)
    assert values["streams.task.offset.interval.ms"] == 30_000
    assert values["streams.acceptable.recovery.lag"] == 5_000_000_000
    assert (
        groups.effective({"streams.task.offset.interval.ms": "999999"}, settings)["streams.task.offset.interval.ms"]
        == 999_999
    )


def test_a_group_without_settings_has_the_brokers() -> None:
    """A group without settings of its own has the broker's, and follows their changes."""
    settings = BrokerSettings(1)
    assert groups.effective({}, settings)["consumer.assignment.interval.ms"] == 1000
    settings.set_dynamic({"group.consumer.assignment.interval.ms": "2000"}, {})
    assert groups.effective({}, settings)["consumer.assignment.interval.ms"] == 2000
    assert groups.effective({}, settings)["share.auto.offset.reset"] == "latest"
