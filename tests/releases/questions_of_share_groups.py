"""Questions about share groups and their state that 4.4 and 4.3 answer differently; earlier releases were not asked."""

import time
from typing import Any
from uuid import UUID

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages import initialize_share_group_state as initialization
from protocol.messages import read_share_group_state as reading
from protocol.messages import read_share_group_state_summary as summary
from protocol.messages import write_share_group_state as writing
from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from protocol.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.read_share_group_state import ReadShareGroupStateRequest
from protocol.messages.read_share_group_state_summary import ReadShareGroupStateSummaryRequest
from protocol.messages.share_group_describe import ShareGroupDescribeRequest
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from protocol.messages.write_share_group_state import WriteShareGroupStateRequest
from protocol.types import uuid_text
from tests.releases.asking import GROUP, Client

SHARE = 2


def a_share_state_that_goes_back(client: Client) -> str:
    """A start offset below the stored one, and a leader without an epoch."""
    group, topic = client.name("group"), client.topic()
    topic_id = _id_of(client, topic)
    client.coordinator(f"{group}:{uuid_text(topic_id)}:0", SHARE)
    new = initialization.InitializeStateData(topic_id, [initialization.PartitionData(0, 1, 5)])
    client.settled(
        lambda: client.ask(ApiKey.INITIALIZE_SHARE_GROUP_STATE, InitializeShareGroupStateRequest(group, [new])),
        lambda response: response.results[0].partitions[0].error_code,
    )
    texts = []
    for leader_epoch in (0, -1):
        change = writing.WriteStateData(topic_id, [writing.PartitionData(0, 1, leader_epoch, 3)])
        answer = client.ask(ApiKey.WRITE_SHARE_GROUP_STATE, WriteShareGroupStateRequest(group, [change]))
        read = summary.ReadStateSummaryData(topic_id, [summary.PartitionData(0, 0)])
        state = client.ask(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, ReadShareGroupStateSummaryRequest(group, [read]))
        result = answer.results[0].partitions[0]
        offset = state.results[0].partitions[0].start_offset
        texts.append(f"{result.error_code.name} {result.error_message}, then offset {offset}")
    return " | ".join(texts)


def a_partition_that_a_share_group_s_topic_gets_later(client: Client) -> str:
    """The start offsets of the first partition and of the second one."""
    group, topic = client.name("group"), client.topic()
    client.coordinator(group, GROUP)
    epoch = _beat(client, group, topic, 0).member_epoch
    first, epoch = _initialized(client, group, topic, 0, epoch)
    client.ask(ApiKey.CREATE_PARTITIONS, CreatePartitionsRequest([CreatePartitionsTopic(topic, 2, None)], 10_000))
    second, _ = _initialized(client, group, topic, 1, epoch)
    return f"{first} {second}"


def a_share_group_that_all_have_left(client: Client) -> str:
    """Its epoch and the assignment's."""
    group, topic = client.name("group"), client.topic()
    client.coordinator(group, GROUP)
    answers = [_beat(client, group, topic, epoch) for epoch in (0, -1)]
    description = client.ask(ApiKey.SHARE_GROUP_DESCRIBE, ShareGroupDescribeRequest([group])).groups[0]
    epochs = " ".join(f"{each.error_code.name} {each.member_epoch}" for each in answers)
    return f"{epochs}, {description.group_state} {description.group_epoch} {description.assignment_epoch}"


def _id_of(client: Client, topic: str) -> UUID:
    uuid: UUID = client.ask(ApiKey.METADATA, MetadataRequest([MetadataRequestTopic(name=topic)])).topics[0].topic_id
    return uuid


def _beat(client: Client, group: str, topic: str, epoch: int) -> Any:
    request = ShareGroupHeartbeatRequest(group, "S1", epoch, subscribed_topic_names=[topic] if epoch == 0 else None)
    return client.ask(ApiKey.SHARE_GROUP_HEARTBEAT, request)


def _read(client: Client, group: str, topic_id: UUID, index: int) -> Any:
    wanted = reading.ReadStateData(topic_id, [reading.PartitionData(index, 0)])
    answer = client.ask(ApiKey.READ_SHARE_GROUP_STATE, ReadShareGroupStateRequest(group, [wanted]))
    return answer.results[0].partitions[0]


def _initialized(client: Client, group: str, topic: str, index: int, epoch: int) -> tuple[str, int]:
    """Send heartbeats until a share partition has a state: its start offset, and the member's epoch."""
    topic_id, deadline = _id_of(client, topic), time.monotonic() + client.patience_s
    while True:
        epoch = _beat(client, group, topic, epoch).member_epoch
        state = _read(client, group, topic_id, index)
        if state.error_code is ErrorCode.NONE or time.monotonic() > deadline:
            return f"{state.error_code.name} {state.start_offset}", epoch


QUESTIONS = (
    a_share_state_that_goes_back,
    a_partition_that_a_share_group_s_topic_gets_later,
    a_share_group_that_all_have_left,
)
