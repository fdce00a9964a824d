"""DescribeConfigs at the handler: what is answered, refused and left out (core C.2)."""

from pathlib import Path

import pytest

from broker.handlers.describe_configs import API
from broker.request.context import ResourceType
from broker.settings import BrokerSettings
from broker.settings.describe import broker_entries, topic_entries
from broker.settings.endpoints import Endpoint
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)
from tests.handlers.configs_harness import BROKER, GROUP, LOGGER, METRICS, TOPIC, Context
from tests.scenarios.transactions.harness import running

UNKNOWN_TOPIC, BAD_TOPIC = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION
REQUEST = ErrorCode.INVALID_REQUEST


async def describe(
    context: Context,
    *resources: tuple[int, str, list[str] | None],
    synonyms: bool = False,
    documentation: bool = False,
    denied: tuple[ResourceType, ...] = (),
) -> list[DescribeConfigsResult]:
    """The results of one request."""
    request = DescribeConfigsRequest(
        [DescribeConfigsResource(int(kind), name, keys) for kind, name, keys in resources], synonyms, documentation
    )
    return list((await API.handle(request, context.request(API, denied=denied))).results)


@pytest.mark.parametrize(
    ("kind", "name", "code", "message"),
    [
        (TOPIC, "missing", UNKNOWN_TOPIC, ""),
        (TOPIC, "", BAD_TOPIC, "Topic name is invalid: the empty string is not allowed"),
        (BROKER, "2", REQUEST, "Unexpected broker id, expected 1 or empty string, but received 2"),
        (BROKER, "x", REQUEST, "Broker id must be an integer, but it is: x"),
        (BROKER, "2147483648", REQUEST, "Broker id must be an integer, but it is: 2147483648"),
        (BROKER, "1" * 5000, REQUEST, f"Broker id must be an integer, but it is: {'1' * 5000}"),
        (BROKER, "+2", REQUEST, "Unexpected broker id, expected 1 or empty string, but received +2"),
        (LOGGER, "", REQUEST, "Broker id must not be empty"),
        (LOGGER, "2", REQUEST, "Unexpected broker id, expected 1 but received 2"),
        (LOGGER, "x", REQUEST, "Broker id must be an integer, but it is: x"),
        (METRICS, "", REQUEST, "Client metrics subscription name must not be empty"),
        (GROUP, "", REQUEST, "Group name must not be empty"),
    ],
)
async def test_CFG_02_a_missing_resource_does_not_fail_the_others(
    kind: int, name: str, code: ErrorCode, message: str
) -> None:
    """The others of the request are answered."""
    refused, answered = await describe(Context(), (kind, name, None), (TOPIC, "foo", None))
    assert refused == DescribeConfigsResult(code, message, kind, name)
    assert (answered.error_code, answered.error_message, len(answered.configs)) == (ErrorCode.NONE, "", 37)


async def test_an_empty_list_of_keys_means_all_and_synonyms_come_only_on_request() -> None:
    """An empty list of keys is as good as none (core C.2.3, C.2.11)."""
    (result,) = await describe(Context(), (TOPIC, "foo", []))
    assert [each.name for each in result.configs] == [each.name for each in topic_entries({}, BrokerSettings(1))]
    assert not any(config.synonyms for config in result.configs)


async def test_CFG_03_a_broker_and_all_brokers() -> None:
    """Every setting of one broker; of all brokers, only the stored defaults."""
    one, all_brokers = await describe(Context(), (BROKER, "1", None), (BROKER, "", None))
    assert [each.name for each in one.configs] == [each.name for each in broker_entries(BrokerSettings(1))]
    configs = {config.name: config for config in one.configs}
    assert configs["log.dirs"].read_only
    assert not configs["log.cleaner.threads"].read_only
    assert (configs["ssl.key.password"].is_sensitive, configs["ssl.key.password"].value) == (True, None)
    (shared,) = all_brokers.configs
    assert (shared.name, shared.value, shared.config_source) == ("min.insync.replicas", "1", 3)


async def test_groups_subscriptions_and_loggers_are_described() -> None:
    """Groups and subscriptions need not exist."""
    group, metrics, logger = await describe(
        Context(), (GROUP, "g", None), (METRICS, "s", None), (LOGGER, "1", ["root"]), documentation=True
    )
    assert (len(group.configs), len(metrics.configs)) == (21, 3)
    root = DescribeConfigsResourceResult("root", "INFO", config_source=6, synonyms=[], documentation="")
    assert list(logger.configs) == [root]


async def test_documentation_comes_on_request() -> None:
    """A setting's documentation is returned on request, else null (core C.2.12)."""
    (result,) = await describe(Context(), (TOPIC, "foo", ["retention.ms"]), documentation=True)
    assert "deleted" in (result.configs[0].documentation or "")


async def test_what_may_not_be_read_is_answered_last() -> None:
    """Each kind of resource with its own error code, and no settings (core C.2.2)."""
    topic, broker, group = (TOPIC, "foo", None), (BROKER, "1", None), (GROUP, "g", None)
    results = await describe(Context(), topic, broker, group, denied=(ResourceType.TOPIC, ResourceType.CLUSTER))
    assert [(each.resource_type, each.error_code, bool(each.configs)) for each in results] == [
        (GROUP, ErrorCode.NONE, True),
        (TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED, False),
        (BROKER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, False),
    ]
    (refused,) = await describe(Context(), group, denied=(ResourceType.GROUP,))
    assert refused.error_code is ErrorCode.GROUP_AUTHORIZATION_FAILED


async def test_a_broker_has_its_identity_and_addresses_as_settings(tmp_path: Path) -> None:
    """As in a server.properties, and with that source: the ports are those that it got."""
    names = ["broker.id", "node.id", "listeners", "advertised.listeners", "listener.security.protocol.map", "log.dirs"]
    request = DescribeConfigsRequest([DescribeConfigsResource(int(BROKER), "2", names)], True)
    async with running(brokers=2, data_dir=tmp_path, further=Endpoint("NET", "PLAINTEXT", "::1", 0, "kafka")) as stage:
        wire = await stage.connect(2)
        (result,) = (await wire.call(ApiKey.DESCRIBE_CONFIGS, 4, request)).results
        (_, first), (_, second) = stage.cluster.nodes[2].bound.values()
    values = {config.name: config.value for config in result.configs}
    assert values.pop("listener.security.protocol.map").endswith(",NET:PLAINTEXT")
    assert values == {
        "broker.id": "2",
        "node.id": "2",
        "listeners": f"PLAINTEXT://127.0.0.1:{first},NET://[::1]:{second}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{first},NET://kafka:{second}",
        "log.dirs": str(tmp_path / "broker-2"),
    }
    assert {config.config_source for config in result.configs} == {4}
    assert all(config.synonyms[0].value == config.value for config in result.configs)
