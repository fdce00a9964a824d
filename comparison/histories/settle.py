"""Waiting for what a step set going to come to rest: each wait watches the cluster itself, none is a length of time.

Kafka answers CreateTopics when its controller has the record, and its broker follows a moment later; it answers EndTxn
before the markers are written. A history that ran on at once would compare moments, not behaviour.
"""

import time
from collections.abc import Sequence
from itertools import count

from comparison.connection import Closed
from comparison.difference import Difference
from comparison.histories.asked import Settle
from comparison.side import Side
from protocol.apis import ApiKey
from protocol.codec import known_versions
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest
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

BELL = "comparison-bell"
"""A topic whose settings are rung: when the broker shows the new value, it has followed everything before."""
TOPIC, SET = 2, 0
PATIENCE_S = 8.0
STUCK_ALIKE_S = 1.5
"""Markers that a partition takes are written within milliseconds."""
_ring = count(1_000_000)


class Restless(Exception):
    """Something did not come to rest in time."""


def patiently(what: str) -> "Deadline":
    """A deadline for a wait."""
    return Deadline(what, time.monotonic() + PATIENCE_S)


class Deadline:
    """Ends a wait that takes too long."""

    def __init__(self, what: str, at: float) -> None:
        self._what, self._at, self._turns = what, at, 0

    def check(self, seen: object = "") -> None:
        """Let a moment pass. Raises Restless, with what was seen last, when the time is up."""
        if time.monotonic() > self._at:
            raise Restless(f"{self._what} {seen}".strip())
        self._turns += 1
        time.sleep(min(0.001 * self._turns, 0.05))


def metadata_followed(side: Side, kind: int = TOPIC, name: str = BELL, setting: str = "retention.ms") -> None:
    """Return when the broker has done whatever the metadata told it before this call.

    Two strokes: the first value may arrive together with the change that is waited for, the second comes after it.
    """
    for _ in range(2):
        value = str(next(_ring))
        resource = AlterConfigsResource(kind, name, [AlterableConfig(setting, SET, value)])
        side.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest([resource]))
        asked = DescribeConfigsRequest([DescribeConfigsResource(kind, name, [setting])])
        deadline = patiently("the brokers follow their metadata")
        for broker in range(1, len(side.brokers) + 1):
            while True:
                (result,) = side.call(ApiKey.DESCRIBE_CONFIGS, 4, asked, broker).results
                if result.configs and result.configs[0].value == value:
                    break
                deadline.check()


def nothing_moves(side: Side) -> None:
    """Return when no partition is on its way to other brokers: until then Kafka's old leader serves on."""
    deadline = patiently("partitions have moved")
    request = ListPartitionReassignmentsRequest(topics=None)
    while side.call(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, request).topics:
        deadline.check()


def leader(side: Side, topic: str, partition: int) -> int:
    """The broker that leads a partition, by the topic's full name; the first one where there is none."""
    if not side.others:
        return 1
    (found,) = side.call(ApiKey.METADATA, 12, MetadataRequest([MetadataRequestTopic(topic)], False)).topics
    led = (each.leader_id for each in found.partitions if each.partition_index == partition)
    return max(next(led, 1), 1)


def coordinator(side: Side, name: str, kind: int) -> int:
    """The broker that coordinates a group (0) or a transactional id (1), by its full name."""
    if not side.others:
        return 1
    request = FindCoordinatorRequest(name, kind, [name])
    (found,) = side.call(ApiKey.FIND_COORDINATOR, 4, request).coordinators
    return max(int(found.node_id), 1)


def transactions_ended(sides: Sequence[Side], name: str) -> list[Difference]:
    """Return when a transactional id is in no state that its coordinators leave by themselves.

    A coordinator whose markers are refused for good stays between its transaction's end and its completion. Where all
    sides stay there, they are alike; where some do, that is the difference.
    """
    deadline = patiently(f"the transaction of {name} ends")
    alike_until = time.monotonic() + STUCK_ALIKE_S
    while True:
        states = [_passing_state(side, name) for side in sides]
        if not any(states):
            return []
        if all(states) and len(set(states)) == 1 and time.monotonic() > alike_until:
            return []
        try:
            deadline.check()
        except Restless:
            return [Difference("Settle", Settle.TRANSACTION.value, states[0], states[-1])]


def _passing_state(side: Side, name: str) -> str:
    """The state that a coordinator leaves by itself; none where it is at rest."""
    request = DescribeTransactionsRequest([side.called(name)])
    broker = coordinator(side, side.called(name), 1)
    (state,) = side.call(ApiKey.DESCRIBE_TRANSACTIONS, 0, request, broker).transaction_states
    if state.error_code in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR):
        return "loading"
    told: str = state.transaction_state
    return told if told.startswith("Prepare") else ""


def requests_done(side: Side, connection: str) -> bool:
    """Wait until everything that was sent on a connection is served; whether it was, or the broker hung up instead."""
    try:
        side.connection(connection).call(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
    except Closed:
        side.connections.pop(connection).close()
        return False
    return True


def warmed_up(side: Side) -> None:
    """Return when the cluster is ready: internal topics there, every coordinator loaded, the bell hung."""
    deadline = patiently("the coordinators load")
    side.call(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([CreatableTopic(BELL, 1, 1)], 15_000))
    metadata_followed(side)
    for kind in (0, 1):
        while True:
            request = FindCoordinatorRequest("any", kind, ["any"])
            (found,) = side.call(ApiKey.FIND_COORDINATOR, 4, request).coordinators
            if not found.error_code:
                break
            deadline.check()
    for number in range(40):  # so many names reach every partition of a few
        _answers_without_loading(side, f"warm-{number}", deadline)
    metadata_followed(side)
    side.close()


def came_back(side: Side) -> None:
    """Return when a restarted cluster leads all its partitions and its coordinators have loaded."""
    deadline = patiently("the cluster comes back")
    while True:
        found = side.call(ApiKey.METADATA, 12, MetadataRequest(None, False)).topics
        if found and all(each.leader_id >= 0 for topic in found for each in topic.partitions):
            break
        deadline.check()
    for number in range(40):
        _answers_without_loading(side, f"warm-{number}", deadline)
    metadata_followed(side)
    side.close()


def _answers_without_loading(side: Side, name: str, deadline: Deadline) -> None:
    waiting = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    for each in (name, None):  # ids of their own come from a block that the broker may be waiting for
        init = InitProducerIdRequest(each, 60_000)
        while side.call(ApiKey.INIT_PRODUCER_ID, 4, init, coordinator(side, name, 1)).error_code in waiting:
            deadline.check()
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(name, None)])
    while side.call(ApiKey.OFFSET_FETCH, 8, request, coordinator(side, name, 0)).groups[0].error_code in waiting:
        deadline.check()


def partitions_of(side: Side, topic: str) -> int:
    """How many partitions a topic has, by its full name; 0 where it does not exist."""
    request = MetadataRequest([MetadataRequestTopic(topic)], False)
    (found,) = side.call(ApiKey.METADATA, 12, request).topics
    return len(found.partitions)


def common_versions(*sides: Side) -> dict[ApiKey, tuple[int, int]]:
    """The versions of each API that both clusters serve and this library can write."""
    common: dict[ApiKey, tuple[int, int]] = {}
    ranges = []
    for side in sides:
        answer = side.call(ApiKey.API_VERSIONS, 3, ApiVersionsRequest("comparison", "1"))
        ranges.append({each.api_key: (each.min_version, each.max_version) for each in answer.api_keys})
    for key in set.intersection(*(set(each) for each in ranges)):
        known = known_versions(key)
        if known is not None:
            lows, highs = zip(*(each[key] for each in ranges), known, strict=True)
            common[ApiKey(key)] = (max(lows), min(highs))
    return common
