"""ListConfigResources at the handler (core C.7)."""

import pytest

from broker.coordination.metadata.configs import NewConfigs
from broker.coordination.metadata.topics import NewTopic
from broker.handlers.list_config_resources import API
from broker.request.context import ResourceType
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.list_config_resources import ListConfigResourcesRequest
from tests.handlers.configs_harness import GROUP, METRICS, TOPIC, Context


def filled() -> Context:
    """A cluster with settings of a group, a subscription and a topic."""
    context = Context()
    for kind, name, key, value in (
        (METRICS, "s", "interval.ms", "1000"),
        (GROUP, "g", "share.isolation.level", "read_committed"),
        (TOPIC, "foo", "retention.ms", "1"),
    ):
        new = {key: value}
        one = NewConfigs(kind, name, new)
        context.metadata.submit(lambda _now_ms, one=one: context.machine.alter_configs([one]))  # type: ignore[misc]
    return context


async def listed(context: Context, *types: int, version: int = 1) -> list[tuple[int, str]]:
    """Types and names, in the order of the answer."""
    response = await API.handle(
        ListConfigResourcesRequest([int(each) for each in types]), context.request(API, version)
    )
    assert response.error_code is ErrorCode.NONE
    return [(each.resource_type, each.resource_name) for each in response.config_resources]


async def test_v0_lists_client_metrics_only() -> None:
    """It was ListClientMetricsResources then (KIP-714)."""
    assert await listed(filled(), version=0) == [(METRICS, "s")]


async def test_a_subscription_without_settings_is_not_listed() -> None:
    """Deleting the last setting deletes the resource."""
    context = filled()
    context.metadata.submit(lambda _now_ms: context.machine.alter_configs([NewConfigs(METRICS, "s", {})]))
    assert await listed(context, METRICS) == []


async def test_without_describe_on_the_cluster_nothing_is_listed() -> None:
    """CLUSTER_AUTHORIZATION_FAILED (core C.7)."""
    context = Context()
    with pytest.raises(KafkaError) as refusal:
        await API.handle(ListConfigResourcesRequest(), context.request(API, denied=(ResourceType.CLUSTER,)))
    assert refusal.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def test_names_come_in_the_order_of_kafkas_maps() -> None:
    """Topics by their hash as a signed number, the others as in a hash table of Java's."""
    context = filled()
    for kind, name, key in ((METRICS, "q", "interval.ms"), (METRICS, "sub-b", "interval.ms")):
        one = NewConfigs(kind, name, {key: "1000"})
        context.metadata.submit(lambda _now_ms, one=one: context.machine.alter_configs([one]))  # type: ignore[misc]
    topics = [NewTopic(name, 1, 1) for name in ("b", "zzzzzz", "a")]
    context.metadata.submit(lambda _now_ms: context.machine.create_topics(topics))
    assert await listed(context, METRICS) == [(METRICS, "q"), (METRICS, "s"), (METRICS, "sub-b")]
    assert await listed(context, TOPIC) == [(TOPIC, "zzzzzz"), (TOPIC, "a"), (TOPIC, "b"), (TOPIC, "foo")]
