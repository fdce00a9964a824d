"""What a topic effectively has, and what it may be given (core C.3, C.6)."""

import pytest

from broker.settings import BrokerSettings, topics
from broker.settings.tables import TOPIC
from protocol.errors import ErrorCode, KafkaError

REMOTE = "remote.storage.enable"
COPY = "remote.log.copy.disable"
DISABLED = (
    "It is invalid to disable remote storage without deleting remote data. "
    "If you want to keep the remote data and turn to read only, "
    "please set `remote.storage.enable=true,remote.log.copy.disable=true`. "
    "If you want to disable remote storage and delete all remote data, "
    "please set `remote.storage.enable=false,remote.log.delete.on.disable=true`."
)


def test_a_topic_has_every_setting_its_own_before_the_brokers() -> None:
    """A topic's settings are complete and typed, its own before the broker's."""
    settings = BrokerSettings(1, {"message.max.bytes": "5"})
    values = topics.effective({"cleanup.policy": "compact", "retention.ms": "1000"}, settings)
    assert values.keys() == TOPIC.keys()
    assert (values["cleanup.policy"], values["retention.ms"]) == (("compact",), 1000)
    assert (values["max.message.bytes"], values["internal.segment.bytes"]) == (5, None)


def test_a_topic_follows_the_broker_where_it_has_nothing_of_its_own() -> None:
    """A later change of the broker's default reaches it (core C.4.5)."""
    settings = BrokerSettings(1)
    settings.set_dynamic({"log.segment.bytes": "2000000"}, {})
    assert topics.effective({}, settings)["segment.bytes"] == 2_000_000
    settings.set_dynamic({}, {})
    assert topics.effective({}, settings)["segment.bytes"] == 1_073_741_824


def test_a_stored_text_that_does_not_parse_counts_as_not_set() -> None:
    """Planted metadata must not stop a log from opening."""
    assert topics.effective({"retention.ms": "x", "unheard.of": "1"}, BrokerSettings(1))["retention.ms"] == 604_800_000


@pytest.mark.parametrize(
    ("proposed", "message"),
    [
        ({"bogus": "1", "retention.ms": "x"}, "Unknown topic config name: bogus"),
        ({"retention.ms": None}, "Null value not supported for topic configs: retention.ms"),
        ({"retention.ms": "x"}, "Invalid value x for configuration retention.ms: Not a number of type LONG"),
        ({"segment.bytes": "10"}, "Invalid value 10 for configuration segment.bytes: Value must be at least 1048576"),
        (
            {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"},
            "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)",
        ),
        (
            {REMOTE: "true"},
            (
                "Tiered Storage functionality is disabled in the broker. "
                "Topic cannot be configured with remote log storage."
            ),
        ),
    ],
)
def test_a_topic_is_refused_settings_that_cannot_be(proposed: dict[str, str | None], message: str) -> None:
    """Settings that a topic cannot have get INVALID_CONFIG (40) with Kafka's messages."""
    with pytest.raises(KafkaError) as refusal:
        topics.validate(proposed, BrokerSettings(1))
    assert (refusal.value.code, refusal.value.message) == (ErrorCode.INVALID_CONFIG, message)


@pytest.mark.parametrize(
    ("existing", "proposed", "message"),
    [
        ({}, {REMOTE: "true"}, None),
        ({}, {REMOTE: "true", "cleanup.policy": ""}, None),
        (
            {},
            {REMOTE: "true", "cleanup.policy": "compact,delete"},
            "Remote log storage only supports topics with cleanup.policy=delete or cleanup.policy being an empty list.",
        ),
        (
            {},
            {REMOTE: "true", "local.retention.ms": "10", "retention.ms": "5"},
            (
                "Invalid value 10 for configuration local.retention.ms: "
                "Value must not be more than retention.ms property value: 5"
            ),
        ),
        (
            {},
            {REMOTE: "true", "local.retention.bytes": "-1", "retention.bytes": "5"},
            (
                "Invalid value -1 for configuration local.retention.bytes: "
                "Value must not be -1 as retention.bytes value is set as 5."
            ),
        ),
        ({}, {REMOTE: "true", COPY: "true"}, None),
        (
            {},
            {REMOTE: "true", COPY: "true", "local.retention.bytes": "5"},
            (
                "When `remote.log.copy.disable` is set to true, the `local.retention.bytes` and `retention.bytes` must "
                "be set to the identical value because there will be no more logs copied to the remote storage."
            ),
        ),
        ({REMOTE: "true"}, {}, DISABLED),
        ({REMOTE: "true"}, {REMOTE: "false"}, DISABLED),
        ({REMOTE: "true"}, {REMOTE: "false", "remote.log.delete.on.disable": "true"}, None),
    ],
)
def test_the_rules_of_tiered_storage(existing: dict[str, str], proposed: dict[str, str], message: str | None) -> None:
    """They hold where the broker has remote.log.storage.system.enable (core C.3)."""
    settings = BrokerSettings(1, {"remote.log.storage.system.enable": "true"})
    if message is None:
        assert topics.validate(proposed, settings, existing) is None  # type: ignore[func-returns-value]
        return
    with pytest.raises(KafkaError) as refusal:
        topics.validate(proposed, settings, existing)
    assert refusal.value.message == message


def test_the_brokers_defaults_take_part_only_with_tiered_storage() -> None:
    """A quirk of LogConfig.validate: the compaction lags of the broker are not looked at otherwise."""
    broker = {"log.cleaner.max.compaction.lag.ms": "5"}
    topics.validate({"min.compaction.lag.ms": "10"}, BrokerSettings(1, broker))
    tiered = BrokerSettings(1, {**broker, "remote.log.storage.system.enable": "true"})
    with pytest.raises(KafkaError, match="conflict topic config setting"):
        topics.validate({"min.compaction.lag.ms": "10"}, tiered)
