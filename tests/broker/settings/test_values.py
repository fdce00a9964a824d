"""Text to value and back, with Kafka's own messages for what it refuses (core C.3)."""

import math

import pytest

from broker.settings.model import Row, Value
from broker.settings.tables import BROKER, CLIENT_METRICS, GROUP, TOPIC
from broker.settings.values import java_double, parse, shown
from protocol.errors import ErrorCode, KafkaError

ROWS = {**CLIENT_METRICS, **GROUP, **TOPIC, **BROKER}

ACCEPTED: list[tuple[str, str, Value, str]] = [
    ("num.io.threads", " 7 ", 7, "7"),
    ("num.io.threads", "+7", 7, "7"),
    ("num.io.threads", "07", 7, "7"),
    ("socket.receive.buffer.bytes", "-1", -1, "-1"),
    ("log.retention.bytes", "9223372036854775807", 2**63 - 1, "9223372036854775807"),
    ("preallocate", "TRUE", True, "true"),
    ("preallocate", " False", False, "false"),
    ("min.cleanable.dirty.ratio", "0.50", 0.5, "0.5"),
    ("log.cleaner.io.buffer.load.factor", "1e3", 1000.0, "1000.0"),
    ("log.cleaner.io.buffer.load.factor", "1d", 1.0, "1.0"),
    ("log.cleaner.io.buffer.load.factor", "1e400", math.inf, "Infinity"),
    ("cleanup.policy", " delete , compact ", ("delete", "compact"), "delete,compact"),
    ("cleanup.policy", "delete,delete", ("delete",), "delete"),
    ("cleanup.policy", "", (), ""),
    ("broker.rack", " a ", "a", "a"),
    ("follower.replication.throttled.replicas", "*", ("*",), "*"),
    ("follower.replication.throttled.replicas", "0:1,1:2", ("0:1", "1:2"), "0:1,1:2"),
    ("follower.replication.throttled.replicas", "0:1,,1:2,", ("0:1", "", "1:2", ""), "0:1,,1:2,"),
    ("follower.replication.throttled.replicas", ",*", ("", "*"), ",*"),
    ("group.consumer.migration.policy", "Upgrade", "Upgrade", "Upgrade"),
    ("controller.quorum.voters", "1@localhost:9093", ("1@localhost:9093",), "1@localhost:9093"),
    ("controller.quorum.bootstrap.servers", "[::1]:9093", ("[::1]:9093",), "[::1]:9093"),
    ("share.auto.offset.reset", "by_duration:PT1H", "by_duration:PT1H", "by_duration:PT1H"),
    ("principal.builder.class", "com.example.Builder", "com.example.Builder", "com.example.Builder"),
]

NUMBER = "Not a number of type"
BOOLEAN = "Expected value to be either true or false"
POLICY = "String must be one of: compact, delete"
RESET = "The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
REPLICAS = (
    "Invalid value [x] for configuration leader.replication.throttled.replicas: leader.replication.throttled.replicas "
    "must be the literal '*' or a list of replicas in the following format: "
    "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
)
VOTERS = "Each entry should be in the form `{id}@{host}:{port}`."

REFUSED = [
    ("num.io.threads", "x", f"Invalid value x for configuration num.io.threads: {NUMBER} INT"),
    ("num.io.threads", "1.5", f"Invalid value 1.5 for configuration num.io.threads: {NUMBER} INT"),
    ("num.io.threads", "1_000", f"Invalid value 1_000 for configuration num.io.threads: {NUMBER} INT"),
    ("num.io.threads", "", f"Invalid value  for configuration num.io.threads: {NUMBER} INT"),
    ("num.io.threads", "2147483648", f"Invalid value 2147483648 for configuration num.io.threads: {NUMBER} INT"),
    ("num.io.threads", "0", "Invalid value 0 for configuration num.io.threads: Value must be at least 1"),
    (
        "offsets.topic.replication.factor",
        "32768",
        f"Invalid value 32768 for configuration offsets.topic.replication.factor: {NUMBER} SHORT",
    ),
    ("retention.ms", "x", f"Invalid value x for configuration retention.ms: {NUMBER} LONG"),
    ("retention.ms", "-2", "Invalid value -2 for configuration retention.ms: Value must be at least -1"),
    ("min.cleanable.dirty.ratio", "x", f"Invalid value x for configuration min.cleanable.dirty.ratio: {NUMBER} DOUBLE"),
    (
        "min.cleanable.dirty.ratio",
        "2",
        "Invalid value 2.0 for configuration min.cleanable.dirty.ratio: Value must be no more than 1",
    ),
    (
        "compression.lz4.level",
        "18",
        "Invalid value 18 for configuration compression.lz4.level: Value must be no more than 17",
    ),
    (
        "compression.gzip.level",
        "0",
        "Invalid value 0 for configuration compression.gzip.level: Value must be between 1 and 9 or equal to -1",
    ),
    ("preallocate", "yes", f"Invalid value yes for configuration preallocate: {BOOLEAN}"),
    ("cleanup.policy", "delete,foo", f"Invalid value foo for configuration cleanup.policy: {POLICY}"),
    ("cleanup.policy", "delete,,compact", "Configuration 'cleanup.policy' values must not be empty."),
    ("listeners", "", "Configuration 'listeners' must not be empty. Valid values include: any non-empty value"),
    (
        "process.roles",
        "",
        "Configuration 'process.roles' must not be empty. Valid values include: [broker, controller]",
    ),
    (
        "message.timestamp.type",
        "createtime",
        (
            "Invalid value createtime for configuration message.timestamp.type: "
            "String must be one of: CreateTime, LogAppendTime"
        ),
    ),
    (
        "group.consumer.migration.policy",
        "up",
        (
            "Invalid value up for configuration group.consumer.migration.policy: "
            "String must be one of (case insensitive): DISABLED, DOWNGRADE, UPGRADE, BIDIRECTIONAL"
        ),
    ),
    (
        "remote.log.metadata.manager.impl.prefix",
        "",
        "Invalid value  for configuration remote.log.metadata.manager.impl.prefix: String must be non-empty",
    ),
    ("leader.replication.throttled.replicas", "x", REPLICAS),
    ("leader.replication.throttled.replicas", "*,*", REPLICAS.replace("[x]", "[*, *]")),
    ("leader.replication.throttled.replicas", "\u0663:1", REPLICAS.replace("[x]", "[\u0663:1]")),
    ("controller.quorum.voters", "a", f"Invalid configuration value for controller.quorum.voters. {VOTERS}"),
    (
        "controller.quorum.voters",
        "1@localhost",
        f"Failed to parse host name from entry 1@localhost for the configuration controller.quorum.voters. {VOTERS}",
    ),
    (
        "controller.quorum.bootstrap.servers",
        "localhost",
        (
            "Failed to parse host name from localhost for the configuration controller.quorum.bootstrap.servers. "
            'Each entry should be in the form "{host}:{port}"'
        ),
    ),
    (
        "share.auto.offset.reset",
        "by_duration:-PT1H",
        (
            "Invalid value by_duration:-PT1H for configuration share.auto.offset.reset: "
            f"Invalid value `by_duration:-PT1H` for configuration share.auto.offset.reset. {RESET}"
        ),
    ),
    (
        "principal.builder.class",
        "x",
        "Invalid value x for configuration principal.builder.class: Class x could not be found.",
    ),
]


@pytest.mark.parametrize(("name", "text", "value", "printed"), ACCEPTED)
def test_a_text_means_what_kafka_takes_it_for(name: str, text: str, value: Value, printed: str) -> None:
    """Blanks around values and commas go, signs and cases are free, and it is printed in one form."""
    parsed = parse(ROWS[name], text)
    assert parsed == value
    assert shown(parsed) == printed


@pytest.mark.parametrize(("name", "text", "message"), REFUSED)
def test_a_refusal_has_kafkas_message(name: str, text: str, message: str) -> None:
    """Every message is the one that a 4.3.1 broker sends."""
    with pytest.raises(KafkaError) as refusal:
        parse(ROWS[name], text)
    assert (refusal.value.code, refusal.value.message) == (ErrorCode.INVALID_CONFIG, message)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (100.0, "100.0"),
        (0.001, "0.001"),
        (1e-4, "1.0E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (123456789.123, "1.23456789123E8"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (-0.0, "-0.0"),
        (-2.5e9, "-2.5E9"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (math.nan, "NaN"),
    ],
)
def test_doubles_are_printed_as_java_does(value: float, text: str) -> None:
    """0.5, 1.0E7, 1.7976931348623157E308 (core C.2.9)."""
    assert java_double(value) == text


@pytest.mark.parametrize(
    ("text", "accepted"),
    [("P1D", True), ("PT1.5S", True), ("pt2m", True), ("P1DT-1H", True), ("PT", False), ("P", False), ("P1DT", False),
     ("-PT1S", False), ("PT-0.5S", False), ("1H", False), (f"PT{'0' * 24}1S", True), ("P0000000000000000000001D", True),
     ("-PT0.0000001S", False), ("-PT0S", True)],
)  # fmt: skip
def test_share_groups_begin_at_an_iso_duration_ago(text: str, accepted: bool) -> None:
    """Any duration of java.time.Duration that is not negative (groups 0.7)."""
    row: Row = GROUP["share.auto.offset.reset"]
    if accepted:
        assert parse(row, f"by_duration:{text}") == f"by_duration:{text}"
    else:
        with pytest.raises(KafkaError):
            parse(row, f"by_duration:{text}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("min.cleanable.dirty.ratio", "1" * 32_766 + "x"),
        ("cleanup.policy", "a" + " " * 32_765 + "b"),
        ("cleanup.policy", "," * 32_767),
        ("leader.replication.throttled.replicas", "1:1," * 8_000 + "x"),
        ("principal.builder.class", "a." * 16_000 + "."),
        ("share.auto.offset.reset", "by_duration:P" + "1" * 32_000 + "D"),
    ],
)
def test_the_longest_value_is_refused_at_once(name: str, text: str) -> None:
    """Two hundred times within the time of a test: a regular expression that goes back takes seconds for one."""
    for _ in range(200):
        with pytest.raises(KafkaError) as refusal:
            parse(ROWS[name], text)
        assert refusal.value.code is ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize("text", ["P99999999999999999999D", "P106751991167301D", "P\u0661D", "PT\u0661S"])
def test_a_duration_has_the_bounds_of_javas(text: str) -> None:
    """An int64 of seconds, written in digits of ASCII."""
    with pytest.raises(KafkaError):
        parse(GROUP["share.auto.offset.reset"], f"by_duration:{text}")
    assert parse(GROUP["share.auto.offset.reset"], "by_duration:P106751991167300D")
