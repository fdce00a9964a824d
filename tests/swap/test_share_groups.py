"""Share groups and their state go from Understudy to Apache Kafka and back, and Kafka's tool reads both topics."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages import read_share_group_state as reading
from protocol.messages import write_share_group_state as writing
from protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.read_share_group_state import ReadShareGroupStateRequest
from protocol.messages.share_group_describe import ShareGroupDescribeRequest
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from protocol.messages.write_share_group_state import WriteShareGroupStateRequest
from tests.releases.asking import GROUP, Client
from tests.storage.kafka_tools import dump_log, need_kafka
from tests.swap.nodes import Node

pytestmark = [pytest.mark.interop, pytest.mark.timeout(180)]
Q, ORDERS = "queue", "orders"
BATCHES = [(3, 4, 2, 1), (5, 5, 0, 2), (6, 9, 4, 5)]


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    """A node that nothing has run on."""
    need_kafka()
    node = Node(tmp_path)
    yield node
    node.stop(clean=False)


class Asker:
    """Asks the broker that runs now about the group."""

    def __init__(self, node: Node) -> None:
        self.client = Client(node.bootstrap)
        self.client.coordinator(Q, GROUP)

    def close(self) -> None:
        """Hang up."""
        self.client.wire.close()

    @property
    def topic_id(self) -> UUID:
        """The id of the topic."""
        request = MetadataRequest([MetadataRequestTopic(name=ORDERS)])
        uuid: UUID = self.client.ask(ApiKey.METADATA, request).topics[0].topic_id
        return uuid

    def beat(self, member: str, epoch: int) -> Any:
        """One heartbeat."""
        names = [ORDERS] if epoch == 0 else None
        return self.client.settled(
            lambda: self.client.ask(
                ApiKey.SHARE_GROUP_HEARTBEAT, ShareGroupHeartbeatRequest(Q, member, epoch, None, names)
            ),
            lambda answer: answer.error_code,
        )

    def assigned(self, member: str) -> list[int]:
        """Join, send heartbeats until there are partitions, and leave; the partitions."""
        answer, deadline = self.beat(member, 0), time.monotonic() + 20
        while answer.assignment is None or not answer.assignment.topic_partitions:
            assert time.monotonic() < deadline
            answer = self.beat(member, answer.member_epoch)
        assert self.beat(member, -1).error_code is ErrorCode.NONE
        return sorted(answer.assignment.topic_partitions[0].partitions)

    def alter(self, index: int, offset: int) -> None:
        """Set a start offset."""
        topic = AlterShareGroupOffsetsRequestTopic(ORDERS, [AlterShareGroupOffsetsRequestPartition(index, offset)])
        answer = self.client.ask(ApiKey.ALTER_SHARE_GROUP_OFFSETS, AlterShareGroupOffsetsRequest(Q, [topic]))
        assert answer.responses[0].partitions[0].error_code is ErrorCode.NONE

    def write(self, state_epoch: int) -> None:
        """Write what a leader has delivered of partition 0."""
        batches = [writing.StateBatch(*each) for each in BATCHES]
        data = writing.WriteStateData(self.topic_id, [writing.PartitionData(0, state_epoch, 0, 3, batches, 6)])
        answer = self.client.ask(ApiKey.WRITE_SHARE_GROUP_STATE, WriteShareGroupStateRequest(Q, [data]))
        assert answer.results[0].partitions[0].error_code is ErrorCode.NONE

    def state(self) -> tuple[int, list[tuple[int, int, int, int]]]:
        """State epoch and batches of partition 0."""
        data = reading.ReadStateData(self.topic_id, [reading.PartitionData(0, 0)])
        answer = self.client.settled(
            lambda: self.client.ask(ApiKey.READ_SHARE_GROUP_STATE, ReadShareGroupStateRequest(Q, [data])),
            lambda response: response.results[0].partitions[0].error_code,
        )
        part = answer.results[0].partitions[0]
        return part.state_epoch, [
            (each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
            for each in part.state_batches
        ]

    def offsets(self) -> dict[int, tuple[int, int]]:
        """Partition -> start offset and lag."""
        request = DescribeShareGroupOffsetsRequest([DescribeShareGroupOffsetsRequestGroup(Q, None)])
        answer = self.client.settled(
            lambda: self.client.ask(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, request),
            lambda response: response.groups[0].error_code,
        )
        assert answer.groups[0].error_code is ErrorCode.NONE
        (topic,) = answer.groups[0].topics
        return {each.partition_index: (each.start_offset, each.lag) for each in topic.partitions}

    def described(self) -> tuple[str, int, int]:
        """State, group epoch, assignment epoch."""
        group = self.client.ask(ApiKey.SHARE_GROUP_DESCRIBE, ShareGroupDescribeRequest([Q])).groups[0]
        return group.group_state, group.group_epoch, group.assignment_epoch


def test_a_share_group_moves_to_kafka_and_back(node: Node) -> None:
    """Epochs, offsets, lag and batches as they were on both sides; each goes on writing."""
    node.start_ours()
    ours = Asker(node)
    assert ours.client.create(ORDERS, partitions=2).error_code is ErrorCode.NONE
    for _ in range(10):
        assert ours.client.produce(ORDERS).error_code is ErrorCode.NONE
    assert ours.assigned("m1") == [0, 1]
    ours.alter(0, 3)
    ours.alter(1, 0)
    epoch = ours.described()[1]
    ours.write(epoch)
    seen = ours.state(), ours.offsets(), ours.described()
    assert seen[0] == (epoch, BATCHES)
    assert seen[1] == {0: (3, 1), 1: (0, 0)}
    ours.close()
    node.stop()
    _check_dumps(node)

    node.start_kafka()
    kafka = Asker(node)
    assert (kafka.state(), kafka.offsets(), kafka.described()) == seen
    assert kafka.assigned("m2") == [0, 1]
    kafka.alter(1, 5)
    seen = kafka.state(), kafka.offsets(), kafka.described()
    kafka.close()
    node.stop()
    assert node.kafka_complaints() == []

    node.start_ours()
    ours = Asker(node)
    assert (ours.state(), ours.offsets(), ours.described()) == seen
    assert seen[1][1][0] == 5
    assert ours.assigned("m3") == [0, 1]
    ours.close()


def _check_dumps(node: Node) -> None:
    """Kafka's tool prints every record of both topics as JSON."""
    states = _payloads(node, "__share_group_state-*/*.log", "--share-group-state-decoder")
    assert [BATCHES[0][0], BATCHES[-1][1]] in [
        [each["stateBatches"][0]["firstOffset"], each["stateBatches"][-1]["lastOffset"]]
        for each in states
        if each["stateBatches"]
    ]
    groups = _payloads(node, "__consumer_offsets-*/*.log", "--offsets-decoder")
    assert any("initializedTopics" in each for each in groups)


def _payloads(node: Node, pattern: str, decoder: str) -> list[dict[str, Any]]:
    files = ",".join(map(str, sorted(node.data.glob(pattern))))
    lines = dump_log(decoder, "--files", files).splitlines()
    payloads = [line.partition("payload: ")[2] for line in lines if "payload: {" in line]
    assert payloads
    return [json.loads(each)["data"] for each in payloads]
