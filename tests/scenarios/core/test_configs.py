"""Configurations described and altered (CFG; core I.3)."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.alter_configs import AlterableConfig as PlainConfig
from protocol.messages.alter_configs import AlterConfigsRequest
from protocol.messages.alter_configs import AlterConfigsResource as PlainResource
from protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from tests.conftest import BrokerWith
from tests.scenarios.core.asking import create, created, topic
from tests.server import Server, until
from tests.wire import Wire

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND = 0, 1, 2
DYNAMIC_TOPIC, DYNAMIC_DEFAULT, STATIC, DEFAULT, DYNAMIC_GROUP = 1, 3, 4, 5, 8


@dataclass(frozen=True)
class Change:
    """One operation on one key."""

    key: str
    value: str | None = None
    operation: int = SET


def altered(wire: Wire, kind: int, name: str, *changes: Change) -> ErrorCode:
    """IncrementalAlterConfigs of one resource; the code."""
    configs = [AlterableConfig(each.key, each.operation, each.value) for each in changes]
    (answer,) = alter_all(wire, AlterConfigsResource(kind, name, configs))
    return answer.error_code


def alter_all(wire: Wire, *resources: AlterConfigsResource) -> Sequence[AlterConfigsResourceResponse]:
    """IncrementalAlterConfigs of several resources."""
    response = wire.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest(resources))
    answers: Sequence[AlterConfigsResourceResponse] = response.responses
    return answers


def describe_all(
    wire: Wire, *resources: DescribeConfigsResource, synonyms: bool = False
) -> Sequence[DescribeConfigsResult]:
    """DescribeConfigs of several resources."""
    response = wire.call(ApiKey.DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(resources, synonyms))
    results: Sequence[DescribeConfigsResult] = response.results
    return results


def described(
    wire: Wire, kind: int, name: str, *keys: str, synonyms: bool = True
) -> dict[str, DescribeConfigsResourceResult]:
    """The entries of one resource, by name."""
    (result,) = describe_all(wire, DescribeConfigsResource(kind, name, keys or None), synonyms=synonyms)
    assert result.error_code is ErrorCode.NONE, result.error_message
    return {each.name: each for each in result.configs}


def synonyms_of(entry: DescribeConfigsResourceResult) -> list[tuple[str, str | None, int]]:
    """Where a value could come from, strongest first."""
    return [(each.name, each.value, each.source) for each in entry.synonyms]


def test_CFG_01_unknown_keys_are_left_out(broker: Server) -> None:
    """retention.ms has no synonym below the topic: its first broker name is not set."""
    wire = broker.wire()
    created(wire, "foo", retention_ms="1000")
    entries = described(wire, TOPIC, "foo", "retention.ms", "bogus")
    assert list(entries) == ["retention.ms"]
    entry = entries["retention.ms"]
    assert (entry.value, entry.config_source, entry.read_only) == ("1000", DYNAMIC_TOPIC, False)
    assert synonyms_of(entry) == [("retention.ms", "1000", DYNAMIC_TOPIC)]


def test_CFG_01_synonyms_lead_to_the_brokers_default(broker: Server) -> None:
    """The topic's own value, then the broker's under its own name."""
    wire = broker.wire()
    created(wire, "foo", max_message_bytes="5000")
    entry = described(wire, TOPIC, "foo", "max.message.bytes")["max.message.bytes"]
    assert synonyms_of(entry) == [
        ("max.message.bytes", "5000", DYNAMIC_TOPIC),
        ("message.max.bytes", "1048588", DEFAULT),
    ]


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (BROKER, "2", ErrorCode.INVALID_REQUEST),
        (BROKER, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_CFG_02_a_resource_that_is_not_here_is_refused(broker: Server, kind: int, name: str, code: ErrorCode) -> None:
    """A broker answers for itself alone; its neighbours in the request are served."""
    wire = broker.wire()
    bad, good = describe_all(wire, DescribeConfigsResource(kind, name), DescribeConfigsResource(BROKER, "1"))
    assert (bad.error_code, bad.configs) == (code, ())
    assert good.error_code is ErrorCode.NONE


def test_CFG_02_an_unknown_kind_of_resource_fails_the_request(broker: Server) -> None:
    """INVALID_REQUEST on every resource."""
    results = describe_all(broker.wire(), DescribeConfigsResource(3, "x"), DescribeConfigsResource(BROKER, "1"))
    assert [each.error_code for each in results] == [ErrorCode.INVALID_REQUEST] * 2


def test_CFG_03_a_broker_describes_what_can_be_changed_and_hides_its_secrets(broker: Server) -> None:
    """Static settings are read-only; a password is sensitive and has no value."""
    entries = described(broker.wire(), BROKER, "1")
    assert entries["log.dirs"].read_only
    assert not entries["log.cleaner.threads"].read_only
    assert (entries["ssl.key.password"].is_sensitive, entries["ssl.key.password"].value) == (True, None)


def test_CFG_04_append_starts_from_the_default(broker: Server) -> None:
    """APPEND to cleanup.policy of a fresh topic starts from the default value."""
    wire = broker.wire()
    created(wire, "foo")
    assert altered(wire, TOPIC, "foo", Change("cleanup.policy", "compact", APPEND)) is ErrorCode.NONE
    assert described(wire, TOPIC, "foo", "cleanup.policy")["cleanup.policy"].value == "delete,compact"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (Change("retention.ms", "5", APPEND), ErrorCode.INVALID_CONFIG),
        (Change("cleanup.policy", "foo"), ErrorCode.INVALID_CONFIG),
        (Change("retention.ms", None, DELETE), ErrorCode.NONE),
    ],
)
def test_CFG_05_operations_must_fit_the_key(broker: Server, change: Change, code: ErrorCode) -> None:
    """Nothing is appended to a number, no policy is invented; deleting what is not set is no error."""
    wire = broker.wire()
    created(wire, "foo")
    assert altered(wire, TOPIC, "foo", change) is code


def test_CFG_06_AlterConfigs_replaces_everything(broker: Server) -> None:
    """What is not listed goes back to its default."""
    wire = broker.wire()
    created(wire, "foo", retention_ms="1000", segment_ms="2000")
    resource = PlainResource(TOPIC, "foo", [PlainConfig("retention.ms", "3000")])
    (answer,) = wire.call(ApiKey.ALTER_CONFIGS, 2, AlterConfigsRequest([resource])).responses
    assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, None)
    entries = described(wire, TOPIC, "foo", "retention.ms", "segment.ms")
    assert (entries["retention.ms"].value, entries["retention.ms"].config_source) == ("3000", DYNAMIC_TOPIC)
    assert (entries["segment.ms"].value, entries["segment.ms"].config_source) == ("604800000", DEFAULT)


def test_CFG_07_a_resource_appears_once(broker: Server) -> None:
    """INVALID_REQUEST on each of its appearances."""
    wire = broker.wire()
    created(wire, "foo")
    twice = [AlterConfigsResource(TOPIC, "foo", [AlterableConfig("retention.ms", SET, "1")]) for _ in range(2)]
    assert {each.error_code for each in alter_all(wire, *twice)} == {ErrorCode.INVALID_REQUEST}


def test_CFG_07_a_key_appears_once(broker: Server) -> None:
    """A request that names a setting twice is refused, and the resource stays as it was."""
    wire = broker.wire()
    created(wire, "foo")
    code = altered(wire, TOPIC, "foo", Change("retention.ms", "1"), Change("retention.ms", "2"))
    assert code is ErrorCode.INVALID_REQUEST
    assert described(wire, TOPIC, "foo", "retention.ms")["retention.ms"].config_source == DEFAULT


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (Change("retention.ms", "1"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (Change("nope", "1"), ErrorCode.INVALID_CONFIG),
    ],
)
def test_CFG_08_values_are_checked_before_the_topic(broker: Server, change: Change, code: ErrorCode) -> None:
    """A bad value is reported even for a topic that does not exist."""
    assert altered(broker.wire(), TOPIC, "missing", change) is code


def test_CFG_09_a_default_for_all_brokers_reaches_the_topics(broker: Server) -> None:
    """Described under the broker's own name and unit, before the file's value."""
    wire = broker.wire()
    created(wire, "foo")
    assert altered(wire, BROKER, "", Change("log.retention.ms", "5000")) is ErrorCode.NONE
    entry = described(wire, TOPIC, "foo", "retention.ms")["retention.ms"]
    assert (entry.value, entry.config_source) == ("5000", DYNAMIC_DEFAULT)
    assert synonyms_of(entry) == [
        ("log.retention.ms", "5000", DYNAMIC_DEFAULT),
        ("log.retention.hours", "168", DEFAULT),
    ]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("1", Change("node.id", "5")),
        ("", Change("listeners", "PLAINTEXT://127.0.0.1:1")),
        ("7", Change("log.retention.ms", "1")),
    ],
)
def test_CFG_10_not_everything_of_a_broker_can_be_changed(broker: Server, name: str, change: Change) -> None:
    """Fixed, per broker only, or of another broker: INVALID_REQUEST, not INVALID_CONFIG."""
    assert altered(broker.wire(), BROKER, name, change) is ErrorCode.INVALID_REQUEST


def test_CFG_11_threads_change_by_a_factor_of_two_at_most(broker_with: BrokerWith) -> None:
    """From 8 threads, 16 is accepted and 20 refused."""
    wire = broker_with(settings={"num.io.threads": 8}).wire()
    assert altered(wire, BROKER, "", Change("num.io.threads", "20")) is ErrorCode.INVALID_REQUEST
    assert altered(wire, BROKER, "", Change("num.io.threads", "16")) is ErrorCode.NONE


def test_CFG_12_settings_are_checked_against_each_other(broker: Server) -> None:
    """The least compaction lag is not more than the most."""
    wire = broker.wire()
    created(wire, "foo")
    changes = Change("min.compaction.lag.ms", "10"), Change("max.compaction.lag.ms", "5")
    assert altered(wire, TOPIC, "foo", *changes) is ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (Change("interval.ms", "50"), ErrorCode.INVALID_REQUEST),
        (Change("foo", "1"), ErrorCode.INVALID_REQUEST),
        (Change("match", "x=.*"), ErrorCode.INVALID_CONFIG),
    ],
)
def test_CFG_13_metrics_subscriptions_are_validated(broker: Server, change: Change, code: ErrorCode) -> None:
    """Too often, an unknown key, an unknown thing to match."""
    assert altered(broker.wire(), CLIENT_METRICS, "s", change) is code


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (Change("root", "LOUD"), ErrorCode.INVALID_CONFIG),
        (Change("nosuch", "INFO"), ErrorCode.INVALID_CONFIG),
        (Change("root", None, DELETE), ErrorCode.INVALID_REQUEST),
    ],
)
def test_CFG_14_loggers_are_validated(broker: Server, change: Change, code: ErrorCode) -> None:
    """No such level, no such logger; and the root keeps a level."""
    assert altered(broker.wire(), BROKER_LOGGER, "1", change) is code


def listed(wire: Wire, *kinds: int) -> ListConfigResourcesResponse:
    """ListConfigResources."""
    response: ListConfigResourcesResponse = wire.call(
        ApiKey.LIST_CONFIG_RESOURCES, 1, ListConfigResourcesRequest(kinds)
    )
    return response


def test_CFG_15_resources_are_listed_by_kind(broker: Server) -> None:
    """Groups and subscriptions that have settings, loggers and brokers that live, topics that are."""
    wire = broker.wire()
    created(wire, "foo")
    assert altered(wire, CLIENT_METRICS, "s", Change("interval.ms", "1000")) is ErrorCode.NONE
    assert altered(wire, GROUP, "g", Change("consumer.session.timeout.ms", "50000")) is ErrorCode.NONE
    everything = listed(wire)
    assert [(each.resource_type, each.resource_name) for each in everything.config_resources] == [
        (GROUP, "g"),
        (CLIENT_METRICS, "s"),
        (BROKER_LOGGER, "1"),
        (BROKER, "1"),
        (TOPIC, "foo"),
    ]
    assert [each.resource_name for each in listed(wire, TOPIC).config_resources] == ["foo"]


def test_CFG_15_an_unknown_kind_cannot_be_listed(broker: Server) -> None:
    """UNSUPPORTED_VERSION, and nothing else."""
    response = listed(broker.wire(), 99)
    assert (response.error_code, response.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, ())


def test_throttling_rates_are_validated_before_all_other_settings(broker: Server) -> None:
    """Kafka defines them apart from the broker's settings, and before them; the order of the request is irrelevant."""
    wire = broker.wire()
    rates = (
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    )
    changes = [AlterableConfig("log.local.retention.ms", SET, "x")]
    for rate in reversed(rates):
        for configs in ([*changes, AlterableConfig(rate, SET, "x")], [AlterableConfig(rate, SET, "x"), *changes]):
            (answer,) = alter_all(wire, AlterConfigsResource(BROKER, "1", configs))
            assert answer.error_code is ErrorCode.INVALID_REQUEST
            assert answer.error_message == f"Invalid value x for configuration {rate}: Not a number of type LONG"
        changes = [AlterableConfig(rate, SET, "x"), *changes]


@pytest.mark.parametrize("group_type", ["consumer", "share", "streams"])
def test_an_internal_setting_of_groups_is_listed_once_it_is_set_at_the_broker(broker: Server, group_type: str) -> None:
    """Its group has the parsed value, the broker's synonym and the group's own value are as they were written."""
    wire = broker.wire()
    name, below = f"{group_type}.assignor.offload.enable", f"group.{group_type}.assignor.offload.enable"
    assert name not in described(wire, GROUP, "g")
    assert altered(wire, BROKER, "", Change(below, "FALSE")) is ErrorCode.NONE
    inherited = until(lambda: described(wire, GROUP, "g", name).get(name), f"{name} of the group")
    from_broker = [(below, "FALSE", DYNAMIC_DEFAULT), (below, "true", DEFAULT)]
    assert (inherited.value, inherited.config_source, synonyms_of(inherited)) == ("false", DYNAMIC_DEFAULT, from_broker)
    assert described(wire, BROKER, "1", below)[below].value == "FALSE"
    assert altered(wire, GROUP, "g", Change(name, " True ")) is ErrorCode.NONE
    own = described(wire, GROUP, "g", name)[name]
    assert (own.value, synonyms_of(own)) == (" True ", [(name, " True ", DYNAMIC_GROUP), *from_broker])


def test_an_internal_setting_of_a_topic_is_described_as_written(broker: Server) -> None:
    """Public settings are described as they are parsed, internal ones from their texts."""
    wire = broker.wire()
    created(wire, "foo", internal_segment_bytes=" 02000000", segment_bytes=" 02000000")
    entries = described(wire, TOPIC, "foo", "internal.segment.bytes", "segment.bytes")
    assert {name: entry.value for name, entry in entries.items()} == {
        "internal.segment.bytes": " 02000000",
        "segment.bytes": "2000000",
    }
    assert synonyms_of(entries["internal.segment.bytes"]) == [("internal.segment.bytes", " 02000000", DYNAMIC_TOPIC)]


def test_CreateTopics_reports_a_default_of_the_brokers_as_it_was_written(broker_with: BrokerWith) -> None:
    """The first layer that has a synonym wins, converted to the topic's unit; DescribeConfigs has parsed values."""
    broker = broker_with(settings={"log.roll.hours": "03", "log.roll.jitter.ms": "05"})
    wire = broker.wire()
    dynamic = {"log.cleaner.min.cleanable.ratio": ".6", "log.preallocate": " TRUE ", "log.retention.bytes": "+7"}
    for name, value in dynamic.items():
        assert altered(wire, BROKER, "", Change(name, value)) is ErrorCode.NONE
    reported = {
        "segment.ms": ("10800000", STATIC),
        "segment.jitter.ms": ("05", STATIC),
        "min.cleanable.dirty.ratio": (".6", DYNAMIC_DEFAULT),
        "preallocate": (" TRUE ", DYNAMIC_DEFAULT),
        "retention.bytes": ("+7", DYNAMIC_DEFAULT),
    }
    (answer,) = create(wire, topic("foo"))
    assert {c.name: (c.value, c.config_source) for c in answer.configs or () if c.name in reported} == reported
    entry = described(wire, TOPIC, "foo", "min.cleanable.dirty.ratio")["min.cleanable.dirty.ratio"]
    assert entry.value == "0.6"


VIOLATIONS = (
    (Change("group.share.assignment.interval.ms", "99999999"), "group.share.assignment.interval.ms must be less than"),
    (Change("listener.security.protocol.map", "A:B"), "Invalid security protocol `B` defined in"),
    (Change("listeners", "x"), "Error creating broker listeners from '[x]'"),
    (Change("log.retention.ms", "0"), "requirement failed: log.retention.ms must be unlimited"),
    (Change("log.cleaner.dedupe.buffer.size", "1"), "requirement failed: log.cleaner.dedupe.buffer.size must be"),
    (Change("cordoned.log.dirs", "x"), "requirement failed: All entries in cordoned.log.dirs must be present in"),
    (Change("max.connections.per.ip.overrides", "x"), "Error parsing configuration property 'max.connections.per.ip"),
    (Change("num.io.threads", "99"), "Invalid value org.apache.kafka.common.config.ConfigException: Dynamic thread"),
)
"""Changes of a broker that violate a rule between settings, and how the message begins, in the order of the checks."""


@pytest.mark.parametrize(("first", "second"), list(itertools.pairwise(VIOLATIONS)), ids=lambda each: each[0].key)
def test_rules_between_settings_are_checked_in_a_fixed_order(
    broker: Server, first: tuple[Change, str], second: tuple[Change, str]
) -> None:
    """Of two violations in one request, the same one is reported in either order of the request."""
    wire = broker.wire()
    for pair in ((first, second), (second, first)):
        configs = [AlterableConfig(change.key, SET, change.value) for change, _ in pair]
        (answer,) = alter_all(wire, AlterConfigsResource(BROKER, "1", configs))
        assert answer.error_code is ErrorCode.INVALID_REQUEST
        assert (answer.error_message or "").startswith(first[1])
