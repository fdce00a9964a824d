"""Whether a broker's settings may change while it runs (core C.4 A8); messages are those of a 4.3.1 broker."""

import pytest

from broker.settings import BrokerSettings
from broker.settings.dynamic import validate_broker
from broker.settings.of_release import TODAY
from protocol.errors import ErrorCode, KafkaError

FRAME = (
    "Invalid value org.apache.kafka.common.config.ConfigException: {} for configuration Invalid dynamic configuration"
)
DOUBLE = (
    "Dynamic thread count update validation failed for {}, value should not be greater than double the current value {}"
)
HALF = "Dynamic thread count update validation failed for {}, value should be at least half the current value {}"
REPORTERS = (
    "Validation of dynamic config update of Set({}) failed with class class kafka.server.DynamicMetricsReporters"
)
SECRETS = "These security configs can be dynamically updated only per-listener using the listener prefix"
PER_BROKER = "Cannot update these configs at default cluster level, broker id must be specified"
LAG = (
    "Invalid value {} for configuration log.remote.copy.lag.{}: "
    "Value must not exceed log.local.retention.{} (effective value: {})"
)
DOUBLED = "Configuration '{}' values must not be duplicated."
KEYSTORE = "listener.name.plaintext.ssl.keystore.location"

FOR_ALL: list[tuple[dict[str, str], str | None]] = [
    ({"node.id": "5", "log.dirs": "x"}, "Cannot update these configs dynamically: [node.id, log.dirs]"),
    ({"node.id": "5", "listeners": "PLAINTEXT://:1"}, "Cannot update these configs dynamically: [node.id]"),
    ({"log.retention.ms": "x", "log.roll.hours": "5"}, "Cannot update these configs dynamically: [log.roll.hours]"),
    ({"listeners": "PLAINTEXT://:1,CONTROLLER://:2"}, f"{PER_BROKER}: [listeners]"),
    ({KEYSTORE: "/x"}, f"{PER_BROKER}: [{KEYSTORE}]"),
    ({"ssl.key.password": "x"}, f"{SECRETS}: [ssl.key.password]"),
    (
        {"ssl.client.auth": "bogus"},
        "Invalid value bogus for configuration ssl.client.auth: String must be one of: required, requested, none",
    ),
    ({"log.retention.ms": "abc"}, "Invalid value abc for configuration log.retention.ms: Not a number of type LONG"),
    (
        {"log.retention.ms": "0"},
        "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
    ),
    ({"num.io.threads": "17"}, FRAME.format(DOUBLE.format("num.io.threads=17", 8))),
    ({"num.io.threads": "16"}, None),
    ({"num.io.threads": "4"}, None),
    ({"num.io.threads": "3"}, FRAME.format(HALF.format("num.io.threads=3", 8))),
    ({"num.network.threads": "1"}, None),
    ({"num.io.threads": "0"}, "Invalid value 0 for configuration num.io.threads: Value must be at least 1"),
    (
        {"log.cleaner.threads": "5"},
        FRAME.format("Log cleaner threads cannot be increased to more than double the current value 1"),
    ),
    ({"log.cleaner.threads": "2"}, None),
    (
        {"log.local.retention.ms": "999999999999"},
        FRAME.format(
            "Invalid value 999999999999 for configuration log.local.retention.ms: "
            "Value must not be more than log.retention.ms property value: 604800000"
        ),
    ),
    (
        {"log.local.retention.ms": "-1"},
        FRAME.format(
            "Invalid value -1 for configuration log.local.retention.ms: "
            "Value must not be -1 as log.retention.ms value is set as 604800000."
        ),
    ),
    ({"log.local.retention.bytes": "5"}, None),
    ({"metric.reporters": ""}, None),
    ({"metric.reporters": "com.example.Reporter"}, FRAME.format(REPORTERS.format("metric.reporters"))),
    (
        {"metric.reporters": "com.example.Reporter", "num.io.threads": "99", "log.retention.ms": "5000"},
        FRAME.format(REPORTERS.format("log.retention.ms, metric.reporters, num.io.threads")),
    ),
    (
        {"group.consumer.assignment.interval.ms": "99999"},
        "group.consumer.assignment.interval.ms must be less than or equal to group.consumer.max.assignment.interval.ms",
    ),
    ({"leader.replication.throttled.rate": "5", "anything.else": "x"}, None),
    (
        {"leader.replication.throttled.rate": "-5"},
        "Invalid value -5 for configuration leader.replication.throttled.rate: Value must be at least 0",
    ),
    ({"log.retention.ms": "-5"}, None),
    ({"log.cleanup.policy": "compact, compact"}, DOUBLED.format("log.cleanup.policy")),
    ({"log.cleanup.policy": ","}, DOUBLED.format("log.cleanup.policy")),
    ({"log.cleanup.policy": "compact,,delete"}, "Configuration 'log.cleanup.policy' values must not be empty."),
    ({"listener.name.plaintext.ssl.enabled.protocols": "a,a"}, DOUBLED.format("ssl.enabled.protocols")),
    (
        {"listener.name.plaintext.max.connections": "x"},
        "Invalid value x for configuration max.connections: Not a number of type INT",
    ),
    ({"listener.name.plaintext.max.connections": "5"}, None),
    ({"max.connections": "0", "num.io.threads": "99"}, FRAME.format("Invalid max.connections 0")),
    ({"max.connections": "0", "metric.reporters": "com.example.Reporter"}, FRAME.format("Invalid max.connections 0")),
    (
        {"max.connections": "0", "listener.name.plaintext.max.connections": "5"},
        FRAME.format("Invalid max.connections 0"),
    ),
    ({"max.connection.creation.rate": "0"}, FRAME.format("Invalid max.connection.creation.rate 0")),
    (
        {"max.connection.creation.rate": "0", "listener.name.plaintext.max.connections": "0"},
        FRAME.format("Invalid max.connections 0"),
    ),
    ({"listener.name.other.max.connections": "0"}, None),
    ({"log.remote.copy.lag.ms": "604800000"}, None),
    ({"log.remote.copy.lag.ms": "604800001"}, FRAME.format(LAG.format(604_800_001, "ms", "ms", 604_800_000))),
    ({"log.remote.copy.lag.ms": "10", "log.retention.ms": "9"}, FRAME.format(LAG.format(10, "ms", "ms", 9))),
    ({"log.remote.copy.lag.ms": "10", "log.local.retention.ms": "0"}, FRAME.format(LAG.format(10, "ms", "ms", 0))),
    ({"log.remote.copy.lag.ms": "10", "log.retention.ms": "-1"}, None),
    ({"log.remote.copy.lag.ms": "-1", "log.local.retention.ms": "9"}, None),
    ({"log.remote.copy.lag.bytes": "10", "log.local.retention.bytes": "-1"}, None),
    (
        {"log.remote.copy.lag.bytes": "10", "log.local.retention.bytes": "9", "log.remote.copy.lag.ms": "604800001"},
        FRAME.format(LAG.format(604_800_001, "ms", "ms", 604_800_000)),
    ),
    (
        {"log.remote.copy.lag.bytes": "10", "log.retention.bytes": "9"},
        FRAME.format(LAG.format(10, "bytes", "bytes", 9)),
    ),
]

FOR_ONE: list[tuple[dict[str, str], str | None]] = [
    ({KEYSTORE: "/x", "listener.name.plaintext.foo": "1"}, None),
    ({"ssl.keystore.location": "/x"}, f"{SECRETS}: [ssl.keystore.location]"),
    ({"sasl.enabled.mechanisms": "PLAIN", "sasl.jaas.config": "x"}, None),
    (
        {"listener.name.plaintext.num.network.threads": "20"},
        FRAME.format(DOUBLE.format("num.network.threads=20", 3)),
    ),
    ({"listener.name.plaintext.num.network.threads": "2"}, None),
    (
        {"listeners": "PLAINTEXT://:1,CONTROLLER://:2"},
        FRAME.format(
            "Configs cannot be updated dynamically for existing listener ListenerName(PLAINTEXT), restart broker or "
            "create a new listener for update"
        ),
    ),
    ({"sasl.mechanism.inter.broker.protocol": "PLAIN"}, None),
    ({"super.users": "x", "allow.everyone.if.no.acl.found": "x"}, None),
    ({"config.providers": ",a"}, None),
    ({"cordoned.log.dirs": "*"}, None),
    (
        {"metric.reporters": "com.example.Reporter", "cordoned.log.dirs": "*"},
        FRAME.format(REPORTERS.format("metric.reporters, cordoned.log.dirs")),
    ),
    (
        {
            "metric.reporters": "a.B",
            "listener.name.plaintext.max.connections": "99",
            "unknown.x": "50",
            "num.network.threads": "4",
            "log.cleaner.backoff.ms": "4",
            "log.segment.bytes": "1048576",
            "message.max.bytes": "2000000",
            "num.replica.fetchers": "2",
        },
        FRAME.format(
            REPORTERS.format(
                "log.cleaner.backoff.ms, log.segment.bytes, metric.reporters, message.max.bytes, "
                "listener.name.plaintext.max.connections, num.network.threads, num.replica.fetchers, unknown.x"
            )
        ),
    ),
    (
        {"principal.builder.class": "x"},
        "Invalid value x for configuration principal.builder.class: Class x could not be found.",
    ),
]


def complaint(texts: dict[str, str], settings: BrokerSettings, *, per_broker: bool) -> str | None:
    """The refusal's message, or None; another error code precedes the message."""
    try:
        validate_broker(texts, settings, per_broker=per_broker)
    except KafkaError as error:
        return error.message if error.code is ErrorCode.INVALID_REQUEST else str(error)
    return None


@pytest.mark.parametrize(("texts", "message"), FOR_ALL)
def test_CFG_10_CFG_11_what_may_be_set_for_all_brokers(texts: dict[str, str], message: str | None) -> None:
    """BROKER "": always 42, with the reason (quirk)."""
    assert complaint(texts, BrokerSettings(1), per_broker=False) == message


@pytest.mark.parametrize(("texts", "message"), FOR_ONE)
def test_what_may_be_set_for_one_broker(texts: dict[str, str], message: str | None) -> None:
    """A setting of one broker is accepted, or refused with Kafka's message."""
    assert complaint(texts, BrokerSettings(1), per_broker=True) == message


def test_threads_are_compared_with_what_runs_now() -> None:
    """A number of threads may be halved from its present value, not from the one at the start."""
    settings = BrokerSettings(1)
    settings.set_dynamic({"log.cleaner.threads": "2"}, {})
    settings.set_dynamic({"log.cleaner.threads": "4"}, {})
    message = "Log cleaner threads cannot be reduced to less than half the current value 4"
    assert complaint({"log.cleaner.threads": "1"}, settings, per_broker=False) == FRAME.format(message)


def test_a_cluster_wide_change_that_this_broker_does_not_follow_is_taken() -> None:
    """A cluster-wide value is accepted even where the broker's own value hides it."""
    settings = BrokerSettings(1)
    settings.set_dynamic({}, {"num.io.threads": "8"})
    assert complaint({"num.io.threads": "99"}, settings, per_broker=False) is None


def test_a_contradiction_that_was_there_before_does_not_block_changes() -> None:
    """Listeners come from the command line and may have names of their own."""
    settings = BrokerSettings(1, {"listeners": "INSIDE://:1,OUTSIDE://:2"})
    assert complaint({"log.retention.ms": "5"}, settings, per_broker=False) is None


def test_up_to_4_3_the_first_of_two_equal_elements_counts() -> None:
    """A broker of 4.3.1 takes what one of 4.4.0 refuses."""
    settings = BrokerSettings(1)
    settings.emulate(TODAY, refuses_duplicates=False)
    assert complaint({"log.cleanup.policy": "compact,compact"}, settings, per_broker=True) is None
