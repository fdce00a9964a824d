"""What DescribeConfigs returns of each resource: values, sources, synonyms (core C.2)."""

from collections.abc import Mapping

import pytest

from broker.settings import BrokerSettings, ConfigResourceType, ConfigSource, ConfigType, tables
from broker.settings.describe import (
    Entry,
    broker_entries,
    client_metrics_entries,
    cluster_wide_entries,
    documentation,
    group_entries,
    logger_entries,
    topic_entries,
)
from broker.settings.model import Row, Visibility

TOPIC, DYNAMIC, SHARED, STATIC, DEFAULT = 1, 2, 3, 4, 5


def synonyms_of(entry: Entry) -> list[tuple[str, str | None, int]]:
    """Synonyms as plain tuples."""
    return [(layer.name, layer.value, int(layer.source)) for layer in entry.synonyms]


def public(table: Mapping[str, Row]) -> set[str]:
    """The settings that are always described."""
    return {name for name, row in table.items() if row.visibility is Visibility.PUBLIC}


def topic(settings: BrokerSettings, key: str, **own: str) -> Entry:
    """One entry of a topic with settings of its own (underscores for dots)."""
    overrides = {name.replace("_", "."): text for name, text in own.items()}
    (entry,) = topic_entries(overrides, settings, [key])
    return entry


def test_CFG_01_a_topics_own_value_and_the_brokers_below() -> None:
    """Its own first, then the broker's under the broker's name."""
    settings = BrokerSettings(1)
    own = {"retention.ms": "1000", "max.message.bytes": "5000"}
    (entry,) = topic_entries(own, settings, ["retention.ms", "bogus"])
    assert (entry.name, entry.value, entry.source, entry.read_only) == (
        "retention.ms",
        "1000",
        ConfigSource.TOPIC,
        False,
    )
    assert entry.type is ConfigType.LONG
    assert synonyms_of(entry) == [("retention.ms", "1000", TOPIC)]
    (entry,) = topic_entries(own, settings, ["max.message.bytes"])
    assert synonyms_of(entry) == [("max.message.bytes", "5000", TOPIC), ("message.max.bytes", "1048588", DEFAULT)]


def test_a_topic_lists_all_public_settings_and_its_hidden_ones() -> None:
    """Those of the table, plus internal.segment.bytes once it is set (core C.2.4)."""
    settings = BrokerSettings(1)
    assert {entry.name for entry in topic_entries({}, settings)} == public(tables.TOPIC)
    hidden = topic(settings, "internal.segment.bytes", internal_segment_bytes="100")
    assert (hidden.value, hidden.source, hidden.type) == ("100", ConfigSource.TOPIC, ConfigType.INT)
    assert list(topic_entries({}, settings, ["internal.segment.bytes"])) == []


def test_entries_before_the_first_broker_synonym_are_dropped() -> None:
    """Only log.retention.hours is set: retention.ms has no synonym and counts as default (core C.2.11)."""
    entry = topic(BrokerSettings(1, {"log.retention.hours": "24"}), "retention.ms")
    assert (entry.value, entry.source, synonyms_of(entry)) == ("86400000", ConfigSource.DEFAULT, [])


def test_CFG_09_a_cluster_wide_default_reaches_topics() -> None:
    """log.retention.ms for all brokers, then the hours that it hides."""
    settings = BrokerSettings(1)
    settings.set_dynamic({"log.retention.ms": "5000"}, {})
    entry = topic(settings, "retention.ms")
    assert (entry.value, entry.source) == ("5000", ConfigSource.DYNAMIC_DEFAULT_BROKER)
    assert synonyms_of(entry) == [("log.retention.ms", "5000", SHARED), ("log.retention.hours", "168", DEFAULT)]


def test_all_layers_are_listed_in_order() -> None:
    """Own, for all, static, default; the broker's texts as written, the topic's as printed."""
    settings = BrokerSettings(1, {"log.cleanup.policy": " compact "})
    settings.set_dynamic({"log.cleanup.policy": "compact,delete"}, {"log.cleanup.policy": " compact , delete "})
    entry = topic(settings, "cleanup.policy", cleanup_policy=" delete , compact ")
    assert entry.value == "delete,compact"
    assert synonyms_of(entry) == [
        ("cleanup.policy", "delete,compact", TOPIC),
        ("log.cleanup.policy", " compact , delete ", DYNAMIC),
        ("log.cleanup.policy", "compact,delete", SHARED),
        ("log.cleanup.policy", " compact ", STATIC),
        ("log.cleanup.policy", "delete", DEFAULT),
    ]
    assert topic(settings, "cleanup.policy").value == "compact,delete"


def test_min_insync_replicas_of_a_fresh_cluster() -> None:
    """With eligible leader replicas it is stored as a default for all (core C.2.11)."""
    settings = BrokerSettings(1)
    settings.set_dynamic({"min.insync.replicas": "1"}, {})
    entry = topic(settings, "min.insync.replicas")
    assert (entry.value, entry.source) == ("1", ConfigSource.DYNAMIC_DEFAULT_BROKER)
    assert synonyms_of(entry) == [("min.insync.replicas", "1", SHARED), ("min.insync.replicas", "1", DEFAULT)]


def test_CFG_03_a_broker_describes_what_is_read_only_and_hides_secrets() -> None:
    """log.dirs read-only, log.cleaner.threads dynamic, ssl.key.password without a value."""
    settings = BrokerSettings(1, {"log.dirs": "/data", "ssl.key.password": "secret"})
    entries = {entry.name: entry for entry in broker_entries(settings)}
    assert entries.keys() == public(tables.BROKER)
    assert entries["log.dirs"].read_only
    assert not entries["log.cleaner.threads"].read_only
    secret = entries["ssl.key.password"]
    assert (secret.sensitive, secret.value, synonyms_of(secret)) == (True, None, [("ssl.key.password", None, STATIC)])
    assert entries["log.retention.ms"].value is None
    assert synonyms_of(entries["log.retention.hours"]) == [("log.retention.hours", "168", DEFAULT)]


def test_what_a_broker_does_not_know_is_listed_when_set_and_secret() -> None:
    """Custom keys may hold secrets (core C.2.9); prefixed ones have their base's type."""
    settings = BrokerSettings(1, {"super.users": "User:a"})
    prefixed = "listener.name.plaintext.num.network.threads"
    settings.set_dynamic({}, {"custom.thing": "6", prefixed: "4", "leader.replication.throttled.rate": "5"})
    keys = ["custom.thing", "super.users", prefixed, "leader.replication.throttled.rate", "never.set"]
    custom, users, threads, rate = broker_entries(settings, keys)
    assert custom == Entry("custom.thing", None, ConfigType.UNKNOWN, True, True, custom.synonyms)
    assert synonyms_of(custom) == [("custom.thing", None, DYNAMIC)]
    assert (users.value, users.sensitive, users.source) == (None, True, ConfigSource.STATIC_BROKER)
    assert (threads.value, threads.type, threads.read_only) == ("4", ConfigType.INT, True)
    assert synonyms_of(threads) == [(prefixed, "4", DYNAMIC), ("num.network.threads", "3", DEFAULT)]
    assert (rate.value, rate.read_only, synonyms_of(rate)) == ("5", False, [(rate.name, "5", DYNAMIC)])


def test_the_cluster_wide_resource_shows_only_what_is_set_there() -> None:
    """BROKER "" (core C.2.5): texts as written, no synonyms from elsewhere."""
    settings = BrokerSettings(1, {"log.retention.ms": "7"})
    settings.set_dynamic({"log.retention.ms": "5", "other.thing": "1"}, {"log.retention.ms": "6"})
    retention, other = cluster_wide_entries(settings)
    assert (retention.value, synonyms_of(retention)) == ("5", [("log.retention.ms", "5", SHARED)])
    assert (other.value, other.sensitive, other.read_only) == (None, True, True)


def test_a_group_that_never_was_has_the_brokers_values() -> None:
    """Defaults with the broker's synonyms; settings without a synonym show their own default (core C.2.8)."""
    settings = BrokerSettings(1, {"group.consumer.heartbeat.interval.ms": "6000"})
    entries = {entry.name: entry for entry in group_entries({}, settings)}
    assert len(entries) == 21
    heartbeat = entries["consumer.heartbeat.interval.ms"]
    assert (heartbeat.value, heartbeat.source) == ("6000", ConfigSource.STATIC_BROKER)
    assert synonyms_of(entries["share.isolation.level"]) == [("share.isolation.level", "read_uncommitted", DEFAULT)]


def test_a_groups_own_values_come_first() -> None:
    """A group's own value is described with source 8, followed by the values that it hides."""
    stored = {"consumer.session.timeout.ms": "50000", "share.isolation.level": "read_committed"}
    session, isolation = group_entries(stored, BrokerSettings(1), list(stored))
    assert session.source is ConfigSource.GROUP
    assert synonyms_of(session) == [
        ("consumer.session.timeout.ms", "50000", 8),
        ("group.consumer.session.timeout.ms", "45000", DEFAULT),
    ]
    assert [layer[1] for layer in synonyms_of(isolation)] == ["read_committed", "read_uncommitted"]


def test_a_client_metrics_subscription_shows_three_settings() -> None:
    """Set ones with source 7, the others with their defaults and no synonyms."""
    entries = {entry.name: entry for entry in client_metrics_entries({"metrics": "a, b"})}
    assert entries.keys() == {"interval.ms", "match", "metrics"}
    assert (entries["interval.ms"].value, entries["interval.ms"].source) == ("300000", ConfigSource.DEFAULT)
    assert (entries["metrics"].value, synonyms_of(entries["metrics"])) == ("a,b", [("metrics", "a,b", 7)])


def test_loggers_have_a_level_and_nothing_else() -> None:
    """Level, source 6, writable, without synonyms (core C.2.7)."""
    (entry,) = logger_entries({"root": "INFO", "broker": "WARN"}, ["root", "root"])
    assert (entry.name, entry.value, entry.source) == ("root", "INFO", ConfigSource.DYNAMIC_BROKER_LOGGER)
    assert (entry.type, entry.read_only, synonyms_of(entry)) == (ConfigType.UNKNOWN, False, [])


@pytest.mark.parametrize(
    ("resource_type", "name", "documented"),
    [
        (ConfigResourceType.TOPIC, "retention.ms", True),
        (ConfigResourceType.BROKER, "listener.name.a.ssl.protocol", True),
        (ConfigResourceType.GROUP, "share.isolation.level", True),
        (ConfigResourceType.CLIENT_METRICS, "match", True),
        (ConfigResourceType.BROKER, "custom.thing", False),
        (ConfigResourceType.TOPIC, "custom.thing", False),
    ],
)
def test_documentation_is_there_for_what_the_tables_know(
    resource_type: ConfigResourceType, name: str, documented: bool
) -> None:
    """Each setting of the tables has a sentence or two of documentation, any other one null."""
    assert (documentation(resource_type, name) is not None) is documented
