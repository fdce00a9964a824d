"""The cases of `benchmarks.capacity`: connections, partitions, ids, groups, members, sessions."""

import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any
from uuid import UUID

from benchmarks.targets import Server
from comparison.connection import Connection
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages import fetch, share_fetch, streams_group_heartbeat
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

_IN_FLIGHT = 64
_PATIENCE_S = 120
_GROUP_PARTITIONS = 100
Request = tuple[ApiKey, int, object]


class Client(Connection):
    """One connection with several requests in flight."""

    def __init__(self, server: Server) -> None:
        super().__init__(socket.create_connection(("127.0.0.1", server.port), timeout=_PATIENCE_S), "capacity")

    def ask(self, requests: Iterable[Request]) -> Iterator[Any]:
        """Send the requests, and yield the responses in order."""
        for key, version, request in requests:
            self.send(key, version, request)
            if len(self.requests.pending) == _IN_FLIGHT:
                yield self.answer()
        while self.waits:
            yield self.answer()


def _until_coordinator(client: Client, kind: int) -> None:
    """Wait until the coordinators' topic exists."""
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=["any"])
        (answer,) = client.ask([(ApiKey.FIND_COORDINATOR, 4, request)])
        if answer.coordinators[0].error_code is ErrorCode.NONE:
            return
        time.sleep(0.2)
    raise TimeoutError("no coordinator")


def _topic(client: Client, name: str, partitions: int) -> UUID:
    request = CreateTopicsRequest(topics=[CreatableTopic(name, partitions, 1)], timeout_ms=60_000)
    (answer,) = client.ask([(ApiKey.CREATE_TOPICS, 7, request)])
    assert answer.topics[0].error_code is ErrorCode.NONE, answer
    topic_id: UUID = answer.topics[0].topic_id
    return topic_id


def _repeat(client: Client, request: Callable[[int], Request], count: int) -> None:
    """Send one request per number; retry those that are refused as not ready yet."""
    left = list(range(count))
    while left:
        answers = client.ask([request(number) for number in left])
        left = [number for number, answer in zip(left, answers, strict=True) if _code(answer) is not ErrorCode.NONE]


def _code(answer: Any) -> ErrorCode:
    topics = getattr(answer, "topics", None)
    code = answer.error_code if topics is None else topics[0].partitions[0].error_code
    ready = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.CONCURRENT_TRANSACTIONS)
    assert code in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, *ready), answer
    return ErrorCode(code)


# --- cases -----------------------------------------------------------------------------------------------------------


def connections(server: Server, stack: ExitStack, count: int) -> None:
    """Open connections, each of which sends one request and stays open."""
    for _ in range(count):
        client = Client(server)
        stack.callback(client.close)
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=["any"])
        list(client.ask([(ApiKey.FIND_COORDINATOR, 4, request)]))


def partitions(server: Server, stack: ExitStack, count: int) -> None:
    """Create topics of a thousand partitions."""
    client = Client(server)
    stack.callback(client.close)
    for first in range(0, count, 1000):
        _topic(client, f"t{first}", min(1000, count - first))


def transactional_ids(server: Server, stack: ExitStack, count: int) -> None:
    """Initialise transactional producers."""
    client = Client(server)
    stack.callback(client.close)
    _until_coordinator(client, 1)
    _repeat(client, lambda n: (ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest(f"id-{n}", 60_000)), count)


def groups(server: Server, stack: ExitStack, count: int) -> None:
    """Commit an offset in each of many groups."""
    client = Client(server)
    stack.callback(client.close)
    _topic(client, "t", 1)
    _until_coordinator(client, 0)
    place = [OffsetCommitRequestTopic("t", [OffsetCommitRequestPartition(0, 7, "")])]
    _repeat(client, lambda n: (ApiKey.OFFSET_COMMIT, 8, OffsetCommitRequest(f"g{n}", topics=place)), count)


def classic_members(server: Server, stack: ExitStack, count: int) -> None:
    """Join one group of the classic protocol, each member on its own connection, and assign something to each."""
    admin = Client(server)
    stack.callback(admin.close)
    _until_coordinator(admin, 0)
    clients = [Client(server) for _ in range(count)]
    for client in clients:
        stack.callback(client.close)

    def join(member_id: str) -> Request:
        protocols = [JoinGroupRequestProtocol("range", b"")]
        request = JoinGroupRequest("g", 300_000, member_id, "consumer", protocols, rebalance_timeout_ms=300_000)
        return ApiKey.JOIN_GROUP, 3, request

    first, *others = clients
    first.send(*join(""))
    joined = first.answer()
    for client in others:
        client.send(*join(""))
    while len(_described(admin).members) < count:
        time.sleep(0.1)
    first.send(*join(joined.member_id))  # the last member, for which the others wait
    joined = first.answer()
    members = [joined, *(client.answer() for client in others)]
    assert all(each.error_code is ErrorCode.NONE for each in members), members
    assignments = [SyncGroupRequestAssignment(each.member_id, b"a") for each in members]
    for client, each in zip(clients, members, strict=True):
        leads = each.member_id == each.leader
        client.send(
            ApiKey.SYNC_GROUP,
            2,
            SyncGroupRequest("g", each.generation_id, each.member_id, assignments if leads else ()),
        )
    for client in clients:
        assert client.answer().error_code is ErrorCode.NONE


def _described(admin: Client) -> Any:
    (answer,) = admin.ask([(ApiKey.DESCRIBE_GROUPS, 1, DescribeGroupsRequest(["g"]))])
    return answer.groups[0]


def consumer_members(server: Server, stack: ExitStack, count: int) -> None:
    """Join one group of the consumer protocol."""

    def join(number: int) -> Request:
        return ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, ConsumerGroupHeartbeatRequest(
            group_id="g", member_id=f"member-{number}", member_epoch=0, rebalance_timeout_ms=300_000,
            subscribed_topic_names=["t"], topic_partitions=[],
        )  # fmt: skip

    _join_by_heartbeat(server, stack, count, join)


def share_members(server: Server, stack: ExitStack, count: int) -> None:
    """Join one share group."""

    def join(number: int) -> Request:
        request = ShareGroupHeartbeatRequest("g", f"member-{number}", 0, None, ["t"])
        return ApiKey.SHARE_GROUP_HEARTBEAT, 1, request

    _join_by_heartbeat(server, stack, count, join)


def streams_members(server: Server, stack: ExitStack, count: int) -> None:
    """Join one streams group, whose topology has one subtopology."""
    topology = streams_group_heartbeat.Topology(1, [streams_group_heartbeat.Subtopology("0", ["t"])])

    def join(number: int) -> Request:
        return ApiKey.STREAMS_GROUP_HEARTBEAT, 0, streams_group_heartbeat.StreamsGroupHeartbeatRequest(
            group_id="g", member_id=f"member-{number}", member_epoch=0, rebalance_timeout_ms=300_000,
            topology=topology, process_id=f"process-{number}", task_offsets=None, task_end_offsets=None,
        )  # fmt: skip

    _join_by_heartbeat(server, stack, count, join)


def _join_by_heartbeat(server: Server, stack: ExitStack, count: int, join: Callable[[int], Request]) -> None:
    client = Client(server)
    stack.callback(client.close)
    _topic(client, "t", _GROUP_PARTITIONS)
    _until_coordinator(client, 0)
    _repeat(client, join, count)


def share_sessions(server: Server, stack: ExitStack, count: int) -> None:
    """Open share sessions; a broker does not check whether their members have joined the group."""
    client = Client(server)
    stack.callback(client.close)
    topic_id = _topic(client, "t", 1)
    topics = [share_fetch.FetchTopic(topic_id, [share_fetch.FetchPartition(0)])]

    def begin(number: int) -> Request:
        request = share_fetch.ShareFetchRequest(
            "g", str(uuid_of(number)), 0, 0, max_records=1, batch_size=1, topics=topics
        )
        return ApiKey.SHARE_FETCH, 1, request

    _repeat(client, begin, count)


def fetch_sessions(server: Server, stack: ExitStack, count: int) -> None:
    """Open fetch sessions of 100 partitions; those beyond the cache's 1,000 slots are served without a session."""
    client = Client(server)
    stack.callback(client.close)
    _topic(client, "t", _GROUP_PARTITIONS)
    partitions = [fetch.FetchPartition(index, partition_max_bytes=1) for index in range(_GROUP_PARTITIONS)]
    topics = [fetch.FetchTopic("t", partitions=partitions)]
    request = fetch.FetchRequest(topics=topics, session_epoch=0)
    _repeat(client, lambda _number: (ApiKey.FETCH, 12, request), count)


def uuid_of(number: int) -> UUID:
    """Return a UUID for the member with that number."""
    return UUID(int=1 << 96 | number)
