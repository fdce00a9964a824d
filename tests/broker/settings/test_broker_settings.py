"""One broker's settings: layers, typed getters, listeners of changes (core C.4.5 and C.4.6)."""

import pytest

from broker.settings import BrokerSettings, ConfigSource
from broker.settings.describe import broker_entries, cluster_wide_entries
from broker.settings.dynamic import validate_broker
from protocol.errors import ErrorCode, KafkaError


def test_precedence_is_default_static_cluster_wide_own() -> None:
    """Each layer hides the one below, and comes back when the one above goes (core C.4.6)."""
    name = "log.retention.bytes"
    settings = BrokerSettings(1)
    seen = [settings.long(name)]
    settings = BrokerSettings(1, {name: "10"})
    seen.append(settings.long(name))
    settings.set_dynamic({name: "20"}, {})
    seen.append(settings.long(name))
    settings.set_dynamic({name: "20"}, {name: "30"})
    seen.append(settings.long(name))
    settings.set_dynamic({}, {})
    seen.append(settings.long(name))
    assert seen == [-1, 10, 20, 30, 10]


def test_getters_answer_in_kafkas_types() -> None:
    """Booleans, numbers, strings, lists, and those that may be null."""
    settings = BrokerSettings(3, {"ssl.enabled.protocols": "a, b", "broker.rack": "r1", "log.cleaner.threads": "2"})
    assert settings.boolean("auto.create.topics.enable") is True
    assert settings.int("log.cleaner.threads") == 2
    assert settings.long("connections.max.idle.ms") == 600_000
    assert settings.double("log.cleaner.io.buffer.load.factor") == 0.9
    assert settings.string("compression.type") == "producer"
    assert settings.list("ssl.enabled.protocols") == ("a", "b")
    assert settings.list("log.dirs") == ()
    assert settings.optional_string("broker.rack") == "r1"
    assert settings.optional_string("inter.broker.listener.name") is None
    assert settings.optional_int("log.retention.ms") is None
    assert settings.optional_int("num.replica.alter.log.dirs.threads") is None


def test_a_name_that_no_table_knows_is_a_mistake_of_ours() -> None:
    """A misspelt name in the broker's own code must not go unnoticed."""
    settings = BrokerSettings(1)
    with pytest.raises(KeyError):
        settings.int("num.partition")
    assert settings.get("num.partition") is None


def test_a_broker_knows_who_it_is() -> None:
    """node.id is the id it was made with; it is broker and controller in one."""
    settings = BrokerSettings(7, {"node.id": "1"})
    assert settings.int("node.id") == 7
    assert settings.list("process.roles") == ("broker", "controller")


def test_a_bad_static_value_is_refused_with_kafkas_message() -> None:
    """A value with which a real broker would not start is refused with Kafka's message."""
    with pytest.raises(KafkaError) as refusal:
        BrokerSettings(1, {"num.partitions": "0"})
    assert refusal.value.code is ErrorCode.INVALID_CONFIG
    assert refusal.value.message == "Invalid value 0 for configuration num.partitions: Value must be at least 1"


def test_listeners_hear_which_effective_values_changed() -> None:
    """Only real changes are reported, once each, and not to listeners that have stopped."""
    settings = BrokerSettings(1)
    heard: list[frozenset[str]] = []
    stop = settings.on_change(heard.append)
    assert settings.set_dynamic({"num.io.threads": "9"}, {}) == {"num.io.threads"}
    assert settings.set_dynamic({"num.io.threads": "9"}, {"num.io.threads": "9"}) == frozenset()
    stop()
    assert settings.set_dynamic({}, {}) == {"num.io.threads"}
    assert heard == [{"num.io.threads"}]


def test_what_may_not_be_dynamic_does_not_count() -> None:
    """Stored read-only names, per-broker names for all, and values that do not parse are left out."""
    settings = BrokerSettings(1)
    shared = {"num.partitions": "9", "ssl.client.auth": "required", "log.segment.bytes": "x", "plugin.thing": "1"}
    settings.set_dynamic(shared, {"ssl.client.auth": "requested"})
    assert settings.int("num.partitions") == 1
    assert settings.string("ssl.client.auth") == "requested"
    assert settings.long("log.segment.bytes") == 1073741824
    assert settings.cluster_wide == {"plugin.thing": "1"}
    assert settings.get("plugin.thing") == "1"


def test_layers_hold_texts_highest_precedence_first() -> None:
    """As DescribeConfigs lists them; nulls are nowhere."""
    settings = BrokerSettings(1, {"log.cleanup.policy": " compact , delete "})
    sources = [source for source, _ in settings.layers]
    assert sources == [
        ConfigSource.DYNAMIC_BROKER,
        ConfigSource.DYNAMIC_DEFAULT_BROKER,
        ConfigSource.STATIC_BROKER,
        ConfigSource.DEFAULT,
    ]
    assert settings.layers[2][1]["log.cleanup.policy"] == " compact , delete "
    assert "log.retention.ms" not in settings.layers[3][1]
    assert settings.layers[3][1]["log.retention.hours"] == "168"


def test_a_listener_has_settings_of_its_own() -> None:
    """Mechanism and listener, else listener, else the broker's (core G.1)."""
    jaas = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
    static = {jaas: "plain", "sasl.jaas.config": "all", "listener.name.sasl_plaintext.connections.max.reauth.ms": "5"}
    settings = BrokerSettings(1, static)
    assert settings.of_listener("SASL_PLAINTEXT", "sasl.jaas.config", "PLAIN") == "plain"
    assert settings.of_listener("SASL_PLAINTEXT", "sasl.jaas.config", "GSSAPI") == "all"
    assert settings.of_listener("SASL_PLAINTEXT", "connections.max.reauth.ms") == 5
    assert settings.of_listener("OTHER", "connections.max.reauth.ms") == 0


def test_topics_inherit_in_their_own_units() -> None:
    """retention.ms from log.retention.hours, segment.ms from log.roll.hours, and so on (core appendix 2)."""
    settings = BrokerSettings(1, {"log.retention.hours": "2", "log.roll.hours": "3", "log.roll.jitter.hours": "1"})
    inherited = settings.topic_defaults
    assert inherited["retention.ms"] == 7_200_000
    assert inherited["segment.ms"] == 10_800_000
    assert inherited["segment.jitter.ms"] == 3_600_000
    assert inherited["flush.ms"] == 2**63 - 1
    settings.set_dynamic({"log.retention.ms": "-7", "log.flush.interval.ms": "5"}, {"log.roll.ms": "1000"})
    inherited = settings.topic_defaults
    assert (inherited["retention.ms"], inherited["flush.ms"], inherited["segment.ms"]) == (-1, 5, 1000)


def test_a_list_of_providers_that_is_bad_is_taken_and_has_no_effect() -> None:
    """Kafka does not check it where it is altered; where the first of two equal ones counts, so it does here."""
    settings = BrokerSettings(1)
    validate_broker({"config.providers": ",a"}, settings, per_broker=True)
    settings.set_dynamic({}, {"config.providers": ",a"})
    assert settings.value("config.providers") == ()
    settings.set_dynamic({}, {"config.providers": "b,b"})
    assert settings.value("config.providers") == ("b",)
    settings.set_dynamic({"config.providers": ",a"}, {"config.providers": "b"})
    assert settings.value("config.providers") == ("b",)


def _described(settings: BrokerSettings, name: str) -> tuple[str | None, int, list[tuple[str | None, int]]]:
    """Value, source, and the values of the layers."""
    (entry,) = broker_entries(settings, [name])
    return entry.value, entry.source, [(each.value, each.source) for each in entry.synonyms]


def test_a_bad_list_of_providers_stops_every_change() -> None:
    """As 4.4.0 answers: changes are described with their source, and take effect afterwards (core C.4.8)."""
    settings, bad = BrokerSettings(1), {"config.providers": ",a"}
    limit = {"max.connections": "77"}
    settings.set_dynamic({"config.providers": "x"}, {})
    assert settings.set_dynamic({"config.providers": "x"}, bad) == frozenset()
    assert _described(settings, "config.providers") == ("x", 2, [(",a", 2), ("x", 3), ("", 5)])
    validate_broker({**bad, **limit}, settings, per_broker=True)
    assert settings.set_dynamic({"config.providers": "x"}, {**bad, **limit}) == frozenset()
    assert _described(settings, "max.connections") == ("2147483647", 2, [("77", 2), ("2147483647", 5)])
    with pytest.raises(
        KafkaError, match=r"INVALID_REQUEST: Configuration 'config\.providers' values must not be empty"
    ):
        validate_broker({"background.threads": "9"}, settings, per_broker=False)
    assert settings.set_dynamic({}, {**limit}) == {"max.connections", "config.providers"}
    assert _described(settings, "max.connections") == ("77", 2, [("77", 2), ("2147483647", 5)])
    settings.set_dynamic(bad, {})
    assert _described(settings, "config.providers") == ("", 3, [(",a", 3), ("", 5)])
    assert [each.value for each in cluster_wide_entries(settings)] == [",a"]
    with pytest.raises(KafkaError, match="values must not be empty"):
        validate_broker(limit, settings, per_broker=True)


def test_settings_of_the_authorizer_are_those_that_it_began_with() -> None:
    """Kafka stores what they are altered to, of any form; StandardAuthorizer reads them once."""
    settings = BrokerSettings(1, {"super.users": "User:root"})
    settings.set_dynamic({"super.users": "nonsense"}, {"allow.everyone.if.no.acl.found": "nonsense"})
    assert (settings.string("super.users"), settings.boolean("allow.everyone.if.no.acl.found")) == ("User:root", False)
