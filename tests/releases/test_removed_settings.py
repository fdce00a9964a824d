"""Settings that a release had, and later ones have not: they are taken, and have their effect."""

import time

import pytest

from broker.access.quotas import BrokerQuotas
from broker.coordination.metadata.quotas import CLIENT_ID, PRODUCER_BYTE_RATE
from broker.options import OptionError, ServeOptions, parse
from broker.options.released import setting_tables
from broker.request.authentication import token_rules
from broker.settings import BrokerSettings
from broker.settings.model import ConfigType
from broker.settings.releases import NAMES
from broker.settings.secrets import REMOVED_PASSWORDS, is_password
from broker.settings.topics import effective
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from tests.conftest import BrokerWith
from tests.releases.asking import Client
from tests.serving import Server
from understudy.serve import gather

TOPIC, BROKER = 2, 4
HOUR_MS = 3_600_000
DIFFERENCE = "message.timestamp.difference.max.ms"


@pytest.fixture
def broker_of_3_9(broker_with: BrokerWith) -> Client:
    """A client of a broker that emulates 3.9."""
    return client_of(broker_with(as_version="3.9"))


def client_of(server: Server) -> Client:
    """Closed with the server's connections."""
    client = Client(server.addresses[0], 5)
    server.opened.append(client.wire)
    return client


def produced(client: Client, topic: str, behind_ms: int) -> ErrorCode:
    """What becomes of a record whose timestamp lies so far behind now."""
    code = client.produce(topic, timestamp_ms=int(time.time() * 1000) - behind_ms).error_code
    assert isinstance(code, ErrorCode)
    return code


def test_a_topic_s_difference_bounds_timestamps_on_both_sides(broker_of_3_9: Client) -> None:
    """Beyond it records are refused, the control: within it they are taken."""
    topic = broker_of_3_9.topic({DIFFERENCE: str(HOUR_MS)})
    assert produced(broker_of_3_9, topic, HOUR_MS // 2) is ErrorCode.NONE
    assert produced(broker_of_3_9, topic, 2 * HOUR_MS) is ErrorCode.INVALID_TIMESTAMP
    assert produced(broker_of_3_9, topic, -2 * HOUR_MS) is ErrorCode.INVALID_TIMESTAMP


def test_the_bounds_of_kip_937_win_over_the_difference(broker_of_3_9: Client) -> None:
    """Each on its own side (LogConfig.messageTimestampBeforeMaxMs)."""
    configs = {DIFFERENCE: str(HOUR_MS), "message.timestamp.before.max.ms": str(3 * HOUR_MS)}
    topic = broker_of_3_9.topic(configs)
    assert produced(broker_of_3_9, topic, 2 * HOUR_MS) is ErrorCode.NONE
    assert produced(broker_of_3_9, topic, -2 * HOUR_MS) is ErrorCode.INVALID_TIMESTAMP


def test_a_broker_s_difference_can_be_altered_and_is_its_topics_default(broker_of_3_9: Client) -> None:
    """It is a setting for the whole cluster, as in a real 3.9."""
    topic = broker_of_3_9.topic()
    assert produced(broker_of_3_9, topic, 2 * HOUR_MS) is ErrorCode.NONE
    assert altered(broker_of_3_9, BROKER, "", "log." + DIFFERENCE, str(HOUR_MS)) is ErrorCode.NONE
    assert produced(broker_of_3_9, topic, 2 * HOUR_MS) is ErrorCode.INVALID_TIMESTAMP
    assert altered(broker_of_3_9, BROKER, "1", "inter.broker.protocol.version", "3.0") is ErrorCode.INVALID_REQUEST


def altered(client: Client, kind: int, name: str, setting: str, value: str) -> ErrorCode:
    """The answer to AlterConfigs of one setting."""
    resource = AlterConfigsResource(kind, name, [AlterableConfig(setting, value)])
    code = client.ask(ApiKey.ALTER_CONFIGS, AlterConfigsRequest([resource])).responses[0].error_code
    assert isinstance(code, ErrorCode)
    return code


@pytest.mark.parametrize(
    ("release", "setting", "value", "code"),
    [
        ("3.9", DIFFERENCE, "5", ErrorCode.NONE),
        ("4.0", DIFFERENCE, "5", ErrorCode.INVALID_CONFIG),
        ("3.5", "message.timestamp.before.max.ms", "5", ErrorCode.INVALID_CONFIG),
        ("3.6", "message.timestamp.before.max.ms", "5", ErrorCode.NONE),
        ("2.0", "message.format.version", "9.9", ErrorCode.NONE),
        ("3.9", "message.format.version", "9.9", ErrorCode.INVALID_CONFIG),
        ("3.9", "message.format.version", "2.3.1", ErrorCode.NONE),
        ("4.0", "message.downconversion.enable", "false", ErrorCode.INVALID_CONFIG),
        ("3.7", "compression.gzip.level", "3", ErrorCode.INVALID_CONFIG),
        ("3.8", "compression.gzip.level", "3", ErrorCode.NONE),
        ("2.1", "retention.ms", "-5", ErrorCode.NONE),
        ("3.3", "retention.ms", "-5", ErrorCode.INVALID_CONFIG),
    ],
)
def test_a_topic_takes_the_settings_of_its_release(
    broker_with: BrokerWith, release: str, setting: str, value: str, code: ErrorCode
) -> None:
    """As real brokers of these releases answered."""
    client = client_of(broker_with(as_version=release))
    assert altered(client, TOPIC, client.topic(), setting, value) is code


def test_down_conversion_can_be_turned_off_for_all_topics(broker_with: BrokerWith) -> None:
    """Unless a topic has its own setting (KIP-283)."""
    client = client_of(broker_with(as_version="2.8", settings={"log.message.downconversion.enable": "false"}))
    for configs, code in (
        ({}, ErrorCode.UNSUPPORTED_VERSION),
        ({"message.downconversion.enable": "true"}, ErrorCode.NONE),
    ):
        topic = client.topic(configs)
        client.produce(topic)
        assert client.fetch(topic, at_most=3).error_code is code


def options(*argv: str) -> ServeOptions:
    """What the server makes of a command line."""
    return parse(gather(argv, {}))


def test_the_command_line_takes_removed_settings_with_their_releases() -> None:
    """Removed settings are taken with a release that had them, and refused without."""
    removed = ("--set", "inter.broker.protocol.version=2.7")
    assert options(*removed, "--as-version", "2.8").settings["inter.broker.protocol.version"] == "2.7"
    with pytest.raises(OptionError, match="Kafka has no such broker setting"):
        options(*removed)
    with pytest.raises(OptionError, match=r"Version 9\.9 is not a valid version"):
        options("--set", "inter.broker.protocol.version=9.9", "--as-version", "3.9")
    with pytest.raises(OptionError, match=r"Version `3\.9` is not a valid version"):
        options("--set", "inter.broker.protocol.version=3.9", "--as-version", "2.8")
    assert options("--topic", f"t:1:{DIFFERENCE}=5", "--as-version", "2.8").topics
    with pytest.raises(OptionError, match="Kafka has no topic setting"):
        options("--topic", f"t:1:{DIFFERENCE}=5")


def test_removed_passwords_are_secrets() -> None:
    """All that any release had, with every emulated release."""
    passwords = {
        name for each in NAMES for name, row in setting_tables(each).removed.items() if row.type is ConfigType.PASSWORD
    }
    assert passwords == REMOVED_PASSWORDS
    assert all(map(is_password, passwords))


def test_client_ids_have_the_quota_of_the_broker_s_file() -> None:
    """Up to 2.8, unless there is a quota for all client ids."""
    settings = BrokerSettings(1, {"quota.producer.default": "1000"})
    settings.emulate(setting_tables("2.8"))
    quotas = BrokerQuotas(settings)
    quotas.follow({})
    assert quotas.produce.bounds.of("alice", "app") == (("", "app"), 1000.0)
    assert quotas.fetch.bounds.of("alice", "app") == (("", "app"), None)
    quotas.follow({((CLIENT_ID, None),): {PRODUCER_BYTE_RATE: 7.0}})
    assert quotas.produce.bounds.of("alice", "app") == (("", "app"), 7.0)


def test_the_old_name_of_the_key_of_tokens_counts() -> None:
    """A release that has delegation.token.master.key, the old name of the token key, obeys it."""
    settings = BrokerSettings(1, {"delegation.token.master.key": "old"})
    settings.emulate(setting_tables("2.6"))
    rules = token_rules(settings)
    assert rules is not None
    assert rules.secret_key == "old"
    assert token_rules(BrokerSettings(1)) is None


def test_defaults_are_the_release_s() -> None:
    """Also of settings that came later, which changed nothing at first."""
    settings = BrokerSettings(1)
    assert settings.long("replica.lag.time.max.ms") == 30_000
    settings.emulate(setting_tables("2.4"))
    assert settings.long("replica.lag.time.max.ms") == 10_000
    assert effective({}, settings)["message.timestamp.after.max.ms"] == 2**63 - 1
    settings.emulate(setting_tables("4.4"))
    assert effective({}, settings)["message.timestamp.after.max.ms"] == HOUR_MS
