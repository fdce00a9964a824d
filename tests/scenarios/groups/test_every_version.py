"""Each version of the APIs of consumer, share and streams groups: what it does, and one error."""

from typing import Any

import pytest

from broker.handlers import (
    consumer_group_describe,
    consumer_group_heartbeat,
    read_share_group_state_summary,
    share_acknowledge,
    share_fetch,
    streams_group_describe,
    streams_group_heartbeat,
    write_share_group_state,
)
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.read_share_group_state_summary import (
    PartitionData as SummaryPartition,
)
from protocol.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadStateSummaryData,
)
from protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, Subtopology, Topology
from protocol.messages.write_share_group_state import PartitionData as WrittenPartition
from protocol.messages.write_share_group_state import StateBatch, WriteShareGroupStateRequest, WriteStateData
from tests.conftest import BrokerWith
from tests.scenarios.core.asking import created
from tests.scenarios.groups.consumers import Consumer, described
from tests.scenarios.groups.members import G, coordinated
from tests.scenarios.groups.sharers import ACCEPT, SHARE_SETTINGS, SHARES
from tests.scenarios.groups.streams import STREAMS_SETTINGS
from tests.scenarios.groups.test_share_fetch import Queue
from tests.server import Server
from tests.versions import every_version


@every_version(consumer_group_heartbeat.API, consumer_group_describe.API)
def test_a_consumer_joins(consumers: Server, version: int) -> None:
    """And is described; a stranger is unknown, and a group that is not there too."""
    wire = coordinated(consumers)
    created(wire, "foo", 3)
    member = Consumer(wire)
    assert member.join(version=version).error_code is ErrorCode.NONE
    assert member.code(version=version) == 0
    assert member.code(1, version=version, member_id="stranger") == 25
    group = described(wire, version=version)
    assert (group.error_code, [each.member_id for each in group.members]) == (ErrorCode.NONE, ["m1"])
    assert described(wire, "none", version).error_code is ErrorCode.GROUP_ID_NOT_FOUND


# --- share groups ----------------------------------------------------------------------------------------------------


@pytest.fixture
def queue(broker_with: BrokerWith) -> Queue:
    """Ten records, and a clock that moves only when it is pushed."""
    server = broker_with(settings=SHARE_SETTINGS)
    server.freeze()
    return Queue(server)


@every_version(share_fetch.API, share_acknowledge.API)
def test_records_are_shared(queue: Queue, version: int) -> None:
    """Acquired, acknowledged, once; a session that is not there."""
    member = queue.member()
    member.version = version
    ((first, last, deliveries),) = member.first()
    assert (first, last, deliveries) == (0, 9, 1)
    assert member.ack(3, 4, ACCEPT) is ErrorCode.NONE
    assert member.ack(3, 4, ACCEPT) is ErrorCode.INVALID_RECORD_STATE
    assert member.fetch(epoch=7).error_code is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    stranger = queue.member("m2")
    stranger.version = version
    code = stranger.acknowledge((0, 9, [ACCEPT]), share_session_epoch=1).error_code
    assert code is ErrorCode.SHARE_SESSION_NOT_FOUND


@every_version(read_share_group_state_summary.API, write_share_group_state.API)
def test_the_state_of_a_share_partition_is_written(queue: Queue, version: int) -> None:
    """By the leader, of a partition that was initialized; with what is delivered since version 1."""

    def written(partition: int) -> ErrorCode:
        states = [WrittenPartition(partition, 0, 0, 5, [StateBatch(5, 6, 2, 1)], 2)]
        request = WriteShareGroupStateRequest(SHARES, [WriteStateData(queue.topic_id, states)])
        (result,) = queue.wire.call(ApiKey.WRITE_SHARE_GROUP_STATE, version, request).results
        code: ErrorCode = result.partitions[0].error_code
        return code

    assert [written(0), written(9)] == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST]
    topics = [ReadStateSummaryData(queue.topic_id, [SummaryPartition(0, 0), SummaryPartition(9, 0)])]
    request = ReadShareGroupStateSummaryRequest(SHARES, topics)
    (result,) = queue.wire.call(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, version, request).results
    partitions = {each.partition: (int(each.error_code), each.start_offset) for each in result.partitions}
    assert partitions == {0: (0, 5), 9: (3, 0)}
    assert result.partitions[0].delivery_complete_count == (2 if version >= 1 else -1)


# --- streams groups --------------------------------------------------------------------------------------------------


@every_version(streams_group_heartbeat.API, streams_group_describe.API)
def test_a_streams_application_joins(broker_with: BrokerWith, version: int) -> None:
    """And is described; a stranger is unknown, and a group that is not there too."""
    wire = coordinated(broker_with(settings=STREAMS_SETTINGS))
    created(wire, "in", 4)

    def beat(member_id: str, epoch: int, **fields: Any) -> int:
        offsets: dict[str, Any] = {"task_offsets": None, "task_end_offsets": None, "client_tags": None}
        request = StreamsGroupHeartbeatRequest(G, member_id, epoch, **offsets, **fields)
        return int(wire.call(ApiKey.STREAMS_GROUP_HEARTBEAT, version, request).error_code)

    topology = Topology(0, [Subtopology("0", ["in"], (), [])])
    tasks: dict[str, Any] = {"active_tasks": (), "standby_tasks": (), "warmup_tasks": ()}
    assert beat("m1", 0, rebalance_timeout_ms=300_000, topology=topology, process_id="p1", **tasks) == 0
    assert beat("stranger", 1) == 25
    groups = {
        each.group_id: each
        for each in wire.call(ApiKey.STREAMS_GROUP_DESCRIBE, version, StreamsGroupDescribeRequest([G, "none"])).groups
    }
    assert [each.member_id for each in groups[G].members] == ["m1"]
    assert (groups[G].error_code, groups["none"].error_code) == (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND)
