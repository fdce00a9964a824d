"""Waiting until the effects of a step are complete: each wait observes the cluster, none is a fixed time.

Kafka responds to CreateTopics when its controller has the record, and its broker follows a moment later; it responds to
EndTxn before the markers are written. A history without waits would compare timing, not behaviour.
"""

import time
from collections.abc import Sequence
from itertools import count

from comparison.connection import Closed
from comparison.difference import Difference
from comparison.histories.step_request import PATIENCE_MS, Settle
from comparison.target import Target
from protocol.apis import ApiKey
from protocol.codec import known_versions
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.describe_transactions import DescribeTransactionsRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

TOPIC, SET = 2, 0
TIMEOUT_S = 8.0
"""After this a cluster counts as stuck: ours, more than Kafka takes to load a coordinator on a busy machine."""
_NAMES = 40
"""Groups and ids that reach every coordinator of the few partitions that the clusters' internal topics have."""
STUCK_ALIKE_S = 1.5
"""Markers that a partition accepts are written within milliseconds: ours, a hundred times that."""
ALIKE_WITHIN_S = 0.5
"""How long clusters may differ in what follows a response: ours, as it mostly takes milliseconds."""
_POLL_S = 0.01  # short beside ALIKE_WITHIN_S
_values = count(1_000_000)  # valid for every setting that is changed, and never its default


def wait_ms(targets: Sequence[Target], ms: int) -> None:
    """Let time pass: the clusters' own, if all can move their clocks, else the real time."""
    if any(target.advance is None for target in targets):
        time.sleep(ms / 1000)
        return
    for target in targets:
        assert target.advance is not None
        target.advance(ms)


class Restless(Exception):
    """A wait that timed out."""


def deadline_for(what: str) -> "Deadline":
    """Return a deadline for a wait."""
    return Deadline(what, time.monotonic() + TIMEOUT_S)


class Deadline:
    """Ends a wait that takes too long."""

    def __init__(self, what: str, at: float) -> None:
        self._what, self._at, self._turns = what, at, 0

    def check(self, seen: object = "") -> None:
        """Sleep briefly. Raises Restless, with the last observation, after the deadline."""
        if time.monotonic() > self._at:
            raise Restless(f"{self._what} {seen}".strip())
        self._turns += 1
        time.sleep(min(0.001 * self._turns, 0.05))  # most waits take milliseconds; few of them seconds


def wait_metadata(target: Target, kind: int = TOPIC, name: str | None = None, setting: str = "retention.ms") -> None:
    """Wait until the brokers have applied all metadata changes made before this call.

    Two rounds: the first value may be applied together with the awaited change, the second one is applied after it.
    """
    name = target.probe if name is None else name
    for _ in range(2):
        value = str(next(_values))
        resource = AlterConfigsResource(kind, name, [AlterableConfig(setting, SET, value)])
        target.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest([resource]))
        request = DescribeConfigsRequest([DescribeConfigsResource(kind, name, [setting])])
        deadline = deadline_for("the brokers follow their metadata")
        for broker in target.present:
            while True:
                (result,) = target.call(ApiKey.DESCRIBE_CONFIGS, 4, request, broker).results
                if result.configs and result.configs[0].value == value:
                    break
                deadline.check()


def wait_reassigned(target: Target) -> None:
    """Wait until no partition is being reassigned: until then Kafka's old leader continues to serve."""
    deadline = deadline_for("partitions have moved")
    request = ListPartitionReassignmentsRequest(topics=None)
    while target.call(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, request).topics:
        deadline.check()


def leader(target: Target, topic: str, partition: int) -> int:
    """Return the leader of a partition, by the topic's full name; broker 1 if there is none."""
    if not target.others:
        return 1
    (metadata,) = target.call(ApiKey.METADATA, 12, MetadataRequest([MetadataRequestTopic(topic)], False)).topics
    led = (part.leader_id for part in metadata.partitions if part.partition_index == partition)
    return max(next(led, 1), 1)


def coordinator(target: Target, name: str, kind: int) -> int:
    """Return the coordinator of a group (0) or a transactional id (1), by its full name."""
    if not target.others:
        return 1
    request = FindCoordinatorRequest(name, kind, [name])
    (result,) = target.call(ApiKey.FIND_COORDINATOR, 4, request).coordinators
    return max(int(result.node_id), 1)


def transactions_ended(targets: Sequence[Target], name: str) -> list[Difference]:
    """Wait until a transactional id is in a state that its coordinator does not leave by itself.

    A coordinator whose markers are always rejected stays in a Prepare state. If all clusters stay there, they agree; if
    only some do, that is a difference.
    """
    deadline = deadline_for(f"the transaction of {name} ends")
    alike_until = time.monotonic() + STUCK_ALIKE_S
    while True:
        states = [_passing_state(target, name) for target in targets]
        if not any(states):
            return []
        if all(states) and len(set(states)) == 1 and time.monotonic() > alike_until:
            return []
        try:
            deadline.check()
        except Restless:
            return [Difference("Settle", Settle.TRANSACTION.value, states[0], states[-1])]


def _passing_state(target: Target, name: str) -> str:
    """Return the state if the coordinator will leave it by itself, else an empty string."""
    request = DescribeTransactionsRequest([target.called(name)])
    broker = coordinator(target, target.called(name), 1)
    (state,) = target.call(ApiKey.DESCRIBE_TRANSACTIONS, 0, request, broker).transaction_states
    if state.error_code in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR):
        return "loading"
    name_of_state: str = state.transaction_state
    return name_of_state if name_of_state.startswith("Prepare") else ""


def wait_alike(targets: Sequence[Target], group: str) -> None:
    """Wait until a consumer group's descriptions are equal: regular expressions are resolved after the response.

    After the timeout it returns: a permanent difference shows in the next responses.
    """
    until = time.monotonic() + ALIKE_WITHIN_S
    while len({_group_as_described(target, group) for target in targets}) > 1 and time.monotonic() < until:
        time.sleep(_POLL_S)


def wait_internal_topics(target: Target) -> None:
    """Wait until the internal topics exist that a streams group's coordinator creates after its response.

    After the timeout it returns: a topic that cannot be created never exists.
    """
    if not target.expected:
        return
    until = time.monotonic() + ALIKE_WITHIN_S
    request = MetadataRequest([MetadataRequestTopic(name) for name in sorted(target.expected)], False)
    while time.monotonic() < until:
        topics = target.call(ApiKey.METADATA, 12, request).topics
        if all(topic.error_code is ErrorCode.NONE for topic in topics):
            break
        time.sleep(_POLL_S)
    target.expected.clear()
    wait_metadata(target)


def _group_as_described(target: Target, group: str) -> object:
    name = target.called(group)
    request = ConsumerGroupDescribeRequest([name])
    broker = coordinator(target, name, 0)
    (described,) = target.call(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, request, broker).groups
    members = sorted((member.member_id, member.member_epoch) for member in described.members)
    return (
        described.error_code,
        described.group_state,
        described.group_epoch,
        described.assignment_epoch,
        tuple(members),
    )


def requests_done(target: Target, connection: str) -> bool:
    """Wait until all requests of a connection are served; False if the broker closed it instead."""
    try:
        target.connection(connection).call(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
    except Closed:
        target.connections.pop(connection).close()
        return False
    return True


def wait_ready(target: Target) -> None:
    """Wait until the cluster is ready: internal topics and probe topic exist, all coordinators are loaded."""
    deadline = deadline_for("the coordinators load")
    target.call(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([CreatableTopic(target.probe, 1, 1)], PATIENCE_MS))
    wait_metadata(target)
    for kind in (0, 1):
        while True:
            request = FindCoordinatorRequest("any", kind, ["any"])
            (result,) = target.call(ApiKey.FIND_COORDINATOR, 4, request).coordinators
            if not result.error_code:
                break
            deadline.check()
    for number in range(_NAMES):
        _answers_without_loading(target, f"warm-{number}", deadline)
    wait_metadata(target)
    target.close()


def wait_restarted(target: Target) -> None:
    """Wait until a restarted cluster has leaders for all partitions and its coordinators are loaded."""
    deadline = deadline_for("the cluster comes back")
    while True:
        topics = target.call(ApiKey.METADATA, 12, MetadataRequest(None, False)).topics
        if topics and all(partition.leader_id >= 0 for topic in topics for partition in topic.partitions):
            break
        deadline.check()
    for number in range(_NAMES):
        _answers_without_loading(target, f"warm-{number}", deadline)
    wait_metadata(target)
    target.close()


def _answers_without_loading(target: Target, name: str, deadline: Deadline) -> None:
    waiting = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    # Also without a name: a new producer id is from a block that the broker may still have to get.
    for transactional_id in (name, None):
        init = InitProducerIdRequest(transactional_id, 60_000)
        while target.call(ApiKey.INIT_PRODUCER_ID, 4, init, coordinator(target, name, 1)).error_code in waiting:
            deadline.check()
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(name, None)])
    while target.call(ApiKey.OFFSET_FETCH, 8, request, coordinator(target, name, 0)).groups[0].error_code in waiting:
        deadline.check()


def partitions_of(target: Target, topic: str) -> int:
    """Return the number of partitions of a topic, by its full name; 0 if it does not exist."""
    request = MetadataRequest([MetadataRequestTopic(topic)], False)
    (metadata,) = target.call(ApiKey.METADATA, 12, request).topics
    return len(metadata.partitions)


def common_versions(*targets: Target) -> dict[ApiKey, tuple[int, int]]:
    """Return the versions of each API that both clusters serve and this library can write."""
    common: dict[ApiKey, tuple[int, int]] = {}
    ranges = []
    for target in targets:
        answer = target.call(ApiKey.API_VERSIONS, 3, ApiVersionsRequest("comparison", "1"))
        ranges.append({api.api_key: (api.min_version, api.max_version) for api in answer.api_keys})
    for key in set.intersection(*(set(by_key) for by_key in ranges)):
        ours = known_versions(key)
        if ours is not None:
            lows, highs = zip(*(by_key[key] for by_key in ranges), ours, strict=True)
            common[ApiKey(key)] = (max(lows), min(highs))
    return common
