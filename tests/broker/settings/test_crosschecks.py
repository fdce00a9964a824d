"""Rules between broker settings, with Kafka's own messages (KafkaConfig.validateValues)."""

import pytest

from broker.settings import BrokerSettings
from broker.settings.crosschecks import broker_problem

GREATER, LESS = "must be greater than or equal to", "must be less than or equal to"
HEAD = "Error creating broker listeners from"

PROBLEMS: list[tuple[dict[str, str], str | None]] = [
    ({}, None),
    ({"log.retention.ms": "-1", "max.connections.per.ip.overrides": "127.0.0.1:5, localhost:-6"}, None),
    ({"broker.id": "1", "cordoned.log.dirs": "*", "queued.max.request.bytes": "-1"}, None),
    (
        {"log.retention.hours": "0"},
        "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
    ),
    ({"log.roll.ms": "0"}, "requirement failed: log.roll.ms must be greater than or equal to 1"),
    ({"log.roll.jitter.ms": "-1"}, "requirement failed: log.roll.jitter.ms must be greater than or equal to 0"),
    (
        {"log.cleaner.dedupe.buffer.size": "2097152", "log.cleaner.threads": "2"},
        "requirement failed: log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
    ),
    (
        {"replica.fetch.wait.max.ms": "40000"},
        (
            "requirement failed: replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms to "
            "prevent unnecessary socket timeouts"
        ),
    ),
    (
        {"replica.fetch.wait.max.ms": "29000", "replica.lag.time.max.ms": "1000"},
        (
            "requirement failed: replica.fetch.wait.max.ms should always be less than or equal to "
            "replica.lag.time.max.ms to prevent frequent changes in ISR"
        ),
    ),
    ({"offsets.topic.compression.codec": "9"}, "Unknown compression type id: 9"),
    (
        {"queued.max.request.bytes": "5"},
        "requirement failed: queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
    ),
    (
        {"max.connections.per.ip": "0"},
        (
            "requirement failed: max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides "
            "property is set."
        ),
    ),
    (
        {"max.connections.per.ip.overrides": "abc"},
        "Error parsing configuration property 'max.connections.per.ip.overrides': begin 0, end -1, length 3",
    ),
    (
        {"max.connections.per.ip.overrides": "127.0.0.1:1, ,abc"},
        "Error parsing configuration property 'max.connections.per.ip.overrides': begin 0, end -1, length 0",
    ),
    ({"max.connections.per.ip.overrides": "127.0.0.1:1, ,"}, None),
    ({"max.connections.per.ip.overrides": ","}, None),
    (
        {"listener.security.protocol.map": ",PLAINTEXT:PLAINTEXT"},
        "Error parsing configuration property 'listener.security.protocol.map': begin 0, end -1, length 0",
    ),
    ({"max.connections.per.ip.overrides": "127.0.0.1:x"}, 'For input string: "x"'),
    ({"max.connections.per.ip.overrides": "h:2147483648"}, 'For input string: "2147483648"'),
    ({"max.connections.per.ip.overrides": f"h:{'1' * 5000}"}, f'For input string: "{"1" * 5000}"'),
    ({"broker.id": "2"}, "You must set `node.id` to the same value as `broker.id`."),
    (
        {"cordoned.log.dirs": "/nope"},
        (
            "requirement failed: All entries in cordoned.log.dirs must be present in log.dirs or log.dir. "
            "Missing entries : /nope"
        ),
    ),
    (
        {"listener.security.protocol.map": "x"},
        "Error parsing configuration property 'listener.security.protocol.map': begin 0, end -1, length 1",
    ),
    (
        {"listener.security.protocol.map": "PLAINTEXT:FOO"},
        "Invalid security protocol `FOO` defined in listener.security.protocol.map",
    ),
    ({"listeners": "foo"}, f"{HEAD} '[foo]': Unable to parse foo to a broker endpoint"),
    ({"listeners": "FOO://:1"}, f"{HEAD} '[FOO://:1]': No security protocol defined for listener FOO"),
    (
        {"listeners": "PLAINTEXT://:1,PLAINTEXT://:2"},
        (
            f"{HEAD} '[PLAINTEXT://:1, PLAINTEXT://:2]': Each listener must have a different name, "
            "listeners: [PLAINTEXT://:1, PLAINTEXT://:2]"
        ),
    ),
    (
        {"listeners": "PLAINTEXT://:1,SSL://:1"},
        (
            f"{HEAD} '[PLAINTEXT://:1, SSL://:1]': Each listener must have a different port, "
            "listeners: [PLAINTEXT://:1, SSL://:1]"
        ),
    ),
    ({"group.coordinator.rebalance.protocols": "consumer"}, "Disabling the 'classic' protocol is not supported."),
    (
        {"group.streams.num.standby.replicas": "3"},
        f"group.streams.num.standby.replicas {LESS} group.streams.max.standby.replicas",
    ),
    (
        {"group.streams.task.offset.interval.ms": "14999"},
        f"group.streams.task.offset.interval.ms {GREATER} group.streams.min.task.offset.interval.ms",
    ),
    (
        {"group.streams.num.warmup.replicas": "21"},
        f"group.streams.num.warmup.replicas {LESS} group.streams.max.warmup.replicas",
    ),
    (
        {"group.share.max.share.sessions": "100"},
        f"group.share.max.share.sessions {GREATER} group.share.max.size",
    ),
    (
        {"group.share.record.lock.duration.ms": "10000"},
        f"group.share.record.lock.duration.ms {GREATER} group.share.min.record.lock.duration.ms",
    ),
    (
        {"group.share.partition.max.record.locks": "5000"},
        f"group.share.max.partition.max.record.locks {GREATER} group.share.partition.max.record.locks",
    ),
]

for kind in ("consumer", "share", "streams"):
    group = f"group.{kind}"
    PROBLEMS += [
        (
            {f"{group}.min.session.timeout.ms": "70000"},
            f"{group}.max.session.timeout.ms {GREATER} {group}.min.session.timeout.ms",
        ),
        (
            {f"{group}.session.timeout.ms": "1000"},
            f"{group}.session.timeout.ms {GREATER} {group}.min.session.timeout.ms",
        ),
        (
            {f"{group}.heartbeat.interval.ms": "20000"},
            f"{group}.heartbeat.interval.ms {LESS} {group}.max.heartbeat.interval.ms",
        ),
        (
            {f"{group}.min.assignment.interval.ms": "2000"},
            f"{group}.assignment.interval.ms {GREATER} {group}.min.assignment.interval.ms",
        ),
        (
            {f"{group}.max.heartbeat.interval.ms": "100000", f"{group}.heartbeat.interval.ms": "50000"},
            f"{group}.heartbeat.interval.ms must be less than {group}.session.timeout.ms",
        ),
    ]


@pytest.mark.parametrize(("static", "problem"), PROBLEMS)
def test_settings_that_contradict_each_other_are_named(static: dict[str, str], problem: str | None) -> None:
    """The message of a real broker that would not start, or nothing."""
    settings = BrokerSettings(1, static)
    assert broker_problem(settings.preview({}, {})) == problem
