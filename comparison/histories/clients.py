"""Steps of clients apart from data: versions, telemetry, resources with configs, lists of transactions.

A client instance is a symbol: the ids of ``a`` and ``b`` are the history's own, ``zero`` and ``one`` are the two
reserved ids, and others have the id that the broker has generated for them, or none yet.
"""

import time
from collections.abc import Sequence
from functools import partial
from operator import attrgetter
from typing import Any
from uuid import UUID, uuid5

from comparison.histories.admin_reads import own_resources
from comparison.histories.quiescence import wait_metadata
from comparison.histories.step_request import Builder, Settle, Step, StepRequest
from comparison.target import Instance, Target
from protocol.apis import ApiKey
from protocol.java import as_int, uuid_hash
from protocol.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.describe_cluster import DescribeClusterRequest
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from protocol.messages.incremental_alter_configs import AlterableConfig as Alteration
from protocol.messages.incremental_alter_configs import AlterConfigsResource as Altered
from protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from protocol.messages.list_config_resources import ListConfigResourcesRequest
from protocol.messages.list_transactions import ListTransactionsRequest
from protocol.messages.push_telemetry import PushTelemetryRequest
from protocol.records.compression import Codec, compress
from protocol.types import ZERO_UUID, uuid_text

RESERVED = {"zero": ZERO_UUID, "one": UUID(int=1)}
OWN = ("a", "b")
LATER_S = 0.12
"""A little more than the shortest push interval of a subscription.

ClientMetricsConfigs.MIN_INTERVAL_MS is 100.
"""
MOST_BYTES = 1_048_576  # the default of telemetry.max.bytes
NOT_COMPRESSED = ("empty", "garbage")
OTLP = b"\x0a\x10\x12\x0e\x12\x0c\x0a\x01m\x1a\x01d*\x04\x0a\x02\x08\x01"
"""An OTLP message with one metric of a resource."""
FIRST_NAMED_TARGET, FIRST_WITH_PATTERN = 5, 2  # versions of ApiVersions (KIP-1242), ListTransactions (KIP-1152)
ANOTHER_CLUSTER = "another"


def _id_of(target: Target, symbol: str) -> UUID:
    if symbol in OWN:
        return uuid5(ZERO_UUID, target.names.prefix + symbol)
    return RESERVED.get(symbol) or target.instances.get(symbol, Instance()).id


# --- ApiVersions -----------------------------------------------------------------------------------------------------


def ask_versions(target: Target, step: Step) -> StepRequest:
    """ApiVersions; `cluster` is own or another, with a node, or null. The features' epoch, an offset, is left out."""
    named = step.get("cluster")
    cluster = target.call(ApiKey.DESCRIBE_CLUSTER, 0, DescribeClusterRequest()).cluster_id if named == "own" else named
    request = ApiVersionsRequest(step.get("name", ""), step.get("version", ""))
    if step["v"] >= FIRST_NAMED_TARGET:
        request = request.changed(cluster_id=cluster, node_id=step.get("node", -1))
    return StepRequest(ApiKey.API_VERSIONS, step["v"], request, step["c"], view=_without_epoch)


def _without_epoch(answer: Any) -> Any:
    by_name = attrgetter("name")
    return answer.changed(
        finalized_features_epoch=min(answer.finalized_features_epoch, 0),
        supported_features=sorted(answer.supported_features, key=by_name),
        finalized_features=sorted(answer.finalized_features, key=by_name),
    )


# --- telemetry -------------------------------------------------------------------------------------------------------


def ask_subscription(target: Target, step: Step) -> StepRequest:
    """GetTelemetrySubscriptions of an instance; `later` waits until the shortest interval is over."""
    _wait(step)
    symbol = step["instance"]

    def after(answer: Any) -> None:
        if not answer.error_code:
            instance = target.instances.setdefault(symbol, Instance())
            instance.id, instance.stale = answer.client_instance_id, instance.subscription
            instance.subscription = answer.subscription_id  # as reduced by `view`

    request = GetTelemetrySubscriptionsRequest(_id_of(target, symbol))
    return StepRequest(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, 0, request, step["c"], after, view=_without_instance)


def _without_instance(answer: Any) -> Any:
    """Remove from a subscription's id the part that is derived from the instance's id, which may be random."""
    if answer.error_code:
        return answer
    return answer.changed(subscription_id=as_int(answer.subscription_id ^ uuid_hash(answer.client_instance_id)))


def push(target: Target, step: Step) -> StepRequest:
    """PushTelemetry; `subscription` is last, stale, or one that no instance has."""
    _wait(step)
    instance, client = target.instances.get(step["instance"], Instance()), _id_of(target, step["instance"])
    # 4711: any other number.
    text = {"last": instance.subscription, "stale": instance.stale, "none": 4711}[step["subscription"]]
    number = as_int(text ^ uuid_hash(client))
    request = PushTelemetryRequest(
        client, number, step.get("terminating", False), step["compression"], _metrics(step["body"], step["compression"])
    )
    return StepRequest(ApiKey.PUSH_TELEMETRY, 0, request, step["c"])


def _metrics(body: str, compression: int) -> bytes:
    """Build a body, compressed with the request's codec if it exists; `garbage` is not, and two bodies are invalid."""
    # Twenty: any number.
    plain = {"empty": b"", "garbage": b"\xff" * 20, "most": bytes(MOST_BYTES), "large": bytes(MOST_BYTES + 1)}
    text = plain.get(body, OTLP)
    if body in NOT_COMPRESSED or compression not in tuple(Codec):
        return text
    packed = bytes(compress(compression, text))
    # Three bytes less, or two more: any number.
    return packed[:-3] if body == "cut" else packed + b"\0\1" if body == "longer" else packed


def _wait(step: Step) -> None:
    if step.get("later"):
        time.sleep(LATER_S)


# --- resources with configs ------------------------------------------------------------------------------------------


def _text(target: Target, value: str | None) -> str | None:
    """Return the value of a config; `{a}` is the id of the instance ``a``."""
    return value and value.replace("{a}", uuid_text(_id_of(target, "a")))


def subscribe(target: Target, step: Step) -> StepRequest:
    """IncrementalAlterConfigs of a resource of any type; each change is [name, operation, value]."""
    changes = [Alteration(name, operation, _text(target, value)) for name, operation, value in step["changes"]]
    resource = Altered(step["kind"], target.called(step["name"]), changes)
    request = IncrementalAlterConfigsRequest([resource], step.get("validate", False))
    return StepRequest(ApiKey.INCREMENTAL_ALTER_CONFIGS, step["v"], request, step["c"], settle=Settle.METADATA)


def replace_subscription(target: Target, step: Step) -> StepRequest:
    """AlterConfigs of a resource of any type: configs that are not named are removed."""
    configs = [AlterableConfig(name, _text(target, value)) for name, value in step["configs"].items()]
    resource = AlterConfigsResource(step["kind"], target.called(step["name"]), configs)
    request = AlterConfigsRequest([resource], step.get("validate", False))
    return StepRequest(ApiKey.ALTER_CONFIGS, step["v"], request, step["c"], settle=Settle.METADATA)


def describe_subscription(target: Target, step: Step) -> StepRequest:
    """DescribeConfigs of a resource of any type."""
    resource = DescribeConfigsResource(step["kind"], target.called(step["name"]), step.get("keys"))
    request = DescribeConfigsRequest([resource], step.get("synonyms", False))
    return StepRequest(ApiKey.DESCRIBE_CONFIGS, step["v"], request, step["c"], reads=True)


def list_resources(target: Target, step: Step) -> StepRequest:
    """ListConfigResources of any types, reduced to brokers and this history's resources."""
    request = ListConfigResourcesRequest(step["kinds"])
    view = partial(own_resources, target)
    return StepRequest(ApiKey.LIST_CONFIG_RESOURCES, step["v"], request, step["c"], reads=True, view=view)


# --- transactions ----------------------------------------------------------------------------------------------------


def list_some_transactions(target: Target, step: Step) -> StepRequest:
    """ListTransactions by states, producers, duration and a pattern, reduced to this history's ids."""
    producers = [target.producer(symbol).id for symbol in step["producers"]]
    pattern = step.get("pattern")
    if pattern is not None:
        pattern = pattern.replace("{own}", target.names.prefix)
    request = ListTransactionsRequest(step["states"], producers, step["duration"], pattern)

    def view(answer: Any) -> Any:
        states = [
            state for state in answer.transaction_states if state.transactional_id.startswith(target.names.prefix)
        ]
        return answer.changed(transaction_states=states)

    return StepRequest(ApiKey.LIST_TRANSACTIONS, step["v"], request, step["c"], reads=True, view=view)


STEPS: dict[str, Builder] = {
    "ask_versions": ask_versions,
    "ask_subscription": ask_subscription,
    "push": push,
    "subscribe": subscribe,
    "replace_subscription": replace_subscription,
    "describe_subscription": describe_subscription,
    "list_resources": list_resources,
    "list_some_transactions": list_some_transactions,
}


def clean_up(target: Target, steps: Sequence[Step]) -> None:
    """Remove the configs that the steps may have left: subscriptions apply to all clients of a cluster."""
    resources = {(step["kind"], step["name"]) for step in steps if step["do"] in {"subscribe", "replace_subscription"}}
    for kind, name in sorted(resources):
        gone = AlterConfigsRequest([AlterConfigsResource(kind, target.called(name), [])])
        target.call(ApiKey.ALTER_CONFIGS, 2, gone)
    if resources:
        wait_metadata(target)
