"""Which names there are, and what the command line answers for others."""

import pytest

from broker.settings.model import ConfigType
from broker.settings.names import base_name, broker_row, broker_synonyms, is_dynamic, is_setting, static_problem


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("num.partitions", "num.partitions"),
        ("listener.name.internal.ssl.client.auth", "ssl.client.auth"),
        ("listener.name.internal.plain.sasl.jaas.config", "sasl.jaas.config"),
        ("listener.name.internal.scram-sha-256.connections.max.reauth.ms", "connections.max.reauth.ms"),
        ("listener.name.x", "listener.name.x"),
    ],
)
def test_a_listeners_setting_is_the_setting_without_its_prefix(name: str, base: str) -> None:
    """With and without a mechanism in between."""
    assert base_name(name) == base


@pytest.mark.parametrize(
    ("name", "synonyms"),
    [
        ("log.retention.hours", ("log.retention.ms", "log.retention.minutes", "log.retention.hours")),
        ("log.roll.ms", ("log.roll.ms", "log.roll.hours")),
        ("log.flush.interval.ms", ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")),
        ("log.flush.scheduler.interval.ms", ("log.flush.scheduler.interval.ms",)),
        ("num.partitions", ("num.partitions",)),
        ("listener.name.a.ssl.protocol", ("listener.name.a.ssl.protocol", "ssl.protocol")),
    ],
)
def test_a_broker_setting_is_looked_up_under_its_synonyms(name: str, synonyms: tuple[str, ...]) -> None:
    """As DynamicBrokerConfig.brokerConfigSynonyms lists them."""
    assert broker_synonyms(name) == synonyms


def test_a_plugins_setting_is_unknown_to_the_broker() -> None:
    """StandardAuthorizer reads super.users, so Kafka does not know its type."""
    assert broker_row("super.users") is None
    assert is_setting("super.users")


def test_a_prefixed_setting_has_the_type_of_its_base_and_is_not_dynamic() -> None:
    """DescribeConfigs calls it read-only (core C.2.6)."""
    row = broker_row("listener.name.plaintext.num.network.threads")
    assert row is not None
    assert row.type is ConfigType.INT
    assert not is_dynamic("listener.name.plaintext.num.network.threads")
    assert is_dynamic("num.network.threads")


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("num.partitions", "3", None),
        ("num.partitionz", "3", "Kafka has no such broker setting; did you mean num.partitions?"),
        ("xyzzy", "3", "Kafka has no such broker setting"),
        ("num.partitions", "x", "Invalid value x for configuration num.partitions: Not a number of type INT"),
        ("listener.name.external.anything", "x", None),
        (
            "listener.name.external.ssl.client.auth",
            "x",
            "Invalid value x for configuration ssl.client.auth: String must be one of: required, requested, none",
        ),
        ("rsm.config.chunk.size", "x", None),
        ("understudy.sync", "every", None),
        (
            "understudy.sync",
            "now",
            "Invalid value now for configuration understudy.sync: String must be one of: every, roll, never",
        ),
        ("super.users", "User:admin", None),
    ],
)
def test_a_bad_setting_on_the_command_line_is_refused_in_one_sentence(
    name: str, text: str, problem: str | None
) -> None:
    """Unknown names get the nearest one, bad values Kafka's reason, plugins' names pass."""
    assert static_problem(name, text) == problem
