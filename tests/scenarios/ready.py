"""When a real Kafka has come to rest: its brokers follow their metadata, its coordinators have loaded, nothing is left.

Kafka answers before it is done: its brokers follow the controller a moment after CreateTopics was answered, and a
coordinator loads a moment after FindCoordinator names it. A row that asked on at once would see that moment.
"""

from collections.abc import Sequence
from contextlib import ExitStack, closing
from itertools import count

from comparison.histories.quiescence import Deadline, Restless, deadline_for
from comparison.target import Target
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.describe_transactions import DescribeTransactionsRequest
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.list_config_resources import ListConfigResourcesRequest
from protocol.messages.list_transactions import ListTransactionsRequest
from protocol.messages.metadata import MetadataRequest
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

BROKER, LOGGERS, CLIENT_METRICS, GROUP = 4, 8, 16, 32
SET, DELETE = 0, 1
ALTERED_SOURCES = {2, 3, 7, 8}
"""Dynamic settings: of a broker, of all brokers, of client metrics, of a group."""
BELL, BELL_SETTING = "bell", "interval.ms"
LOADING = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
_ring = count(1_000_000)


def altered(side: Target, kind: int, name: str, *configs: AlterableConfig) -> None:
    """IncrementalAlterConfigs of one resource."""
    resource = AlterConfigsResource(kind, name, list(configs))
    side.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest([resource]))


def followed(addresses: Sequence[str]) -> None:
    """Return when each broker has applied all metadata that was written before this call.

    A subscription of client metrics is altered until every broker shows it, twice: the first value may be shown while
    the change that is waited for is still being done. Then it is gone again.
    """
    deadline = deadline_for("the brokers follow their metadata")
    with ExitStack() as stack:
        sides = [stack.enter_context(closing(Target(address))) for address in addresses]
        for value in (str(next(_ring)), str(next(_ring)), None):
            operation = DELETE if value is None else SET
            altered(sides[0], CLIENT_METRICS, BELL, AlterableConfig(BELL_SETTING, operation, value))
            for side in sides if value is not None else ():
                while value not in _rung(side):
                    deadline.check()


def _rung(side: Target) -> list[str | None]:
    request = DescribeConfigsRequest([DescribeConfigsResource(CLIENT_METRICS, BELL, [BELL_SETTING])])
    results = side.call(ApiKey.DESCRIBE_CONFIGS, 4, request).results
    return [each.value for result in results for each in result.configs]


def coordinator_loaded(address: str, key: str, kind: int) -> None:
    """Return when a broker that was named as coordinator answers as one; key types as in FindCoordinator."""
    deadline = deadline_for(f"the coordinator of {key} loads")
    with closing(Target(address)) as side:
        while _loading(side, key, kind):
            deadline.check()


def _loading(side: Target, key: str, kind: int) -> bool:
    if kind:
        answer = side.call(ApiKey.DESCRIBE_TRANSACTIONS, 0, DescribeTransactionsRequest([key]))
        return answer.transaction_states[0].error_code in LOADING
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(key, None)])
    return side.call(ApiKey.OFFSET_FETCH, 8, request).groups[0].error_code in LOADING


def transactions_settled(addresses: Sequence[str]) -> None:
    """Return when no transaction is between its end and its last marker."""
    for address in addresses:
        deadline = deadline_for("transactions complete")
        with closing(Target(address)) as side:
            while states := _unsettled(side):
                deadline.check(states)


def _unsettled(side: Target) -> set[str]:
    answer = side.call(ApiKey.LIST_TRANSACTIONS, 0, ListTransactionsRequest())
    if answer.error_code in LOADING:
        return {"loading"}
    states = {each.transaction_state for each in answer.transaction_states}
    return {state for state in states if state.startswith("Prepare")}


def all_led(addresses: Sequence[str]) -> None:
    """Return when each broker reports a leader for each partition, and all its replicas in sync."""
    for address in addresses:
        deadline = deadline_for("every partition has its leader")
        with closing(Target(address)) as side:
            while not _leads_all(side):
                deadline.check()


def _leads_all(side: Target) -> bool:
    topics = side.call(ApiKey.METADATA, 12, MetadataRequest(None, False)).topics
    parts = [part for topic in topics for part in topic.partitions]
    return all(part.leader_id >= 0 and len(part.isr_nodes) == len(part.replica_nodes) for part in parts)


# --- as just started -------------------------------------------------------------------------------------------------


def emptied(addresses: Sequence[str]) -> None:
    """Without topics, groups, transactional ids, settings and quotas: coordinators forget what their topics held."""
    with closing(Target(addresses[0])) as side:
        _unlimited(side)
        topics = side.call(ApiKey.METADATA, 12, MetadataRequest(None, False)).topics
        names = [DeleteTopicState(each.name) for each in topics]
        if names:
            answer = side.call(ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest(timeout_ms=10_000, topics=names))
            if any(each.error_code for each in answer.responses):
                raise Restless("topics cannot be deleted there")
        _unset(side, BROKER, ["", *map(str, range(1, len(addresses) + 1))])
        for kind in (CLIENT_METRICS, GROUP):
            listed = side.call(ApiKey.LIST_CONFIG_RESOURCES, 1, ListConfigResourcesRequest([kind])).config_resources
            _unset(side, kind, [each.resource_name for each in listed])
    followed(addresses)
    for address in addresses:
        _without_topics(address, deadline_for("topics are deleted"))


def _unlimited(side: Target) -> None:
    """Remove all quotas of clients."""
    quotas = side.call(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, DescribeClientQuotasRequest()).entries or ()
    entries = [
        EntryData(
            [EntityData(part.entity_type, part.entity_name) for part in each.entity],
            [OpData(value.key, remove=True) for value in each.values],
        )
        for each in quotas
    ]
    if entries:
        side.call(ApiKey.ALTER_CLIENT_QUOTAS, 1, AlterClientQuotasRequest(entries))


def _unset(side: Target, kind: int, names: Sequence[str]) -> None:
    if not names:
        return
    request = DescribeConfigsRequest([DescribeConfigsResource(kind, name, None) for name in names])
    for result in side.call(ApiKey.DESCRIBE_CONFIGS, 4, request).results:
        mine = [each.name for each in result.configs if each.config_source in ALTERED_SOURCES]
        if kind == BROKER and result.resource_name:  # a broker shows those of all brokers too
            mine = [each.name for each in result.configs if each.config_source == min(ALTERED_SOURCES)]
        if mine:
            altered(side, kind, result.resource_name, *[AlterableConfig(name, DELETE, None) for name in mine])


def _without_topics(address: str, deadline: Deadline) -> None:
    with closing(Target(address)) as side:
        while side.call(ApiKey.METADATA, 12, MetadataRequest(None, False)).topics:
            deadline.check()
