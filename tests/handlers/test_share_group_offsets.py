"""Describe-, Alter- and DeleteShareGroupOffsets at their handlers (groups D.10); answers compared with a real 4.3.1."""

import asyncio
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from broker.handlers import alter_share_group_offsets, delete_share_group_offsets, describe_share_group_offsets
from broker.handlers import share_group_heartbeat as heartbeat
from broker.request.context import AclOperation
from broker.time.clock import turns
from protocol.errors import ErrorCode
from protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.handlers.group_harness import DENIED, Stage
from tests.versions import every_version

END_OFFSET = 10


@pytest.fixture
async def stage() -> Stage:
    """A broker that coordinates every group, and leads partitions that end at offset 10."""
    stage = Stage()
    log = SimpleNamespace(high_watermark=END_OFFSET)
    partition = SimpleNamespace(led_by=lambda _leader: log, state=SimpleNamespace(leader=1))
    cast("Any", stage).partitions = {("foo", index): partition for index in range(3)}
    return stage


async def alter(stage: Stage, topics: Mapping[str, Mapping[int, int]], denied: Iterable[DENIED] = ()) -> Any:
    """AlterShareGroupOffsets of the group g."""
    request = AlterShareGroupOffsetsRequest(
        "g",
        [
            AlterShareGroupOffsetsRequestTopic(
                name, [AlterShareGroupOffsetsRequestPartition(index, offset) for index, offset in offsets.items()]
            )
            for name, offsets in topics.items()
        ],
    )
    return await stage.ask(alter_share_group_offsets.API, request, 0, denied)


async def describe(
    stage: Stage,
    topics: Mapping[str, list[int]] | None,
    denied: Iterable[DENIED] = (),
    group: str = "g",
    version: int = 1,
) -> Any:
    """DescribeShareGroupOffsets of one group."""
    named = None
    if topics is not None:
        named = [DescribeShareGroupOffsetsRequestTopic(name, indexes) for name, indexes in topics.items()]
    request = DescribeShareGroupOffsetsRequest([DescribeShareGroupOffsetsRequestGroup(group, named)])
    (described_group,) = (await stage.ask(describe_share_group_offsets.API, request, version, denied)).groups
    return described_group


async def delete(stage: Stage, *topics: str, denied: Iterable[DENIED] = ()) -> Any:
    """DeleteShareGroupOffsets of the group g."""
    request = DeleteShareGroupOffsetsRequest("g", [DeleteShareGroupOffsetsRequestTopic(name) for name in topics])
    return await stage.ask(delete_share_group_offsets.API, request, 0, denied)


def codes(answer: Any) -> dict[str, dict[int, ErrorCode]]:
    """The codes of an answer's partitions."""
    return {
        topic.topic_name: {each.partition_index: each.error_code for each in topic.partitions}
        for topic in answer.responses
    }


async def join(stage: Stage, epoch: int = 0) -> ErrorCode:
    """A heartbeat of a member of g."""
    request = ShareGroupHeartbeatRequest("g", "m1", epoch, subscribed_topic_names=["foo"])
    code: ErrorCode = (await stage.ask(heartbeat.API, request, 1)).error_code
    return code


@every_version(describe_share_group_offsets.API)
async def test_SHR_35_altered_offsets_are_described(stage: Stage, version: int) -> None:
    """With the lag since version 1; partitions and topics that do not exist have an error of their own."""
    answer = await alter(stage, {"foo": {0: 7, 9: 1}, "nope": {0: 1}})
    assert answer.error_code is ErrorCode.NONE
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes(answer) == {"nope": {0: unknown}, "foo": {0: ErrorCode.NONE, 9: unknown}}
    group = await describe(stage, None, version=version)
    (topic,) = group.topics
    (partition,) = topic.partitions
    assert (topic.topic_name, topic.topic_id, partition.partition_index) == ("foo", stage.foo, 0)
    assert (partition.start_offset, partition.leader_epoch, partition.lag) == (
        7,
        0,
        END_OFFSET - 7 if version >= 1 else -1,
    )
    group = await describe(stage, {"foo": [0, 2], "nope": [0]})
    offsets = {topic.topic_name: [each.start_offset for each in topic.partitions] for topic in group.topics}
    assert offsets == {"foo": [7, -1], "nope": [-1]}


async def test_a_partition_that_is_not_there_is_looked_for_again(stage: Stage) -> None:
    """Five times, with pauses by the clock, as the persister does after UNKNOWN_TOPIC_OR_PARTITION (groups D.9)."""
    await alter(stage, {"foo": {0: 7}})
    task = asyncio.create_task(describe(stage, {"foo": [9, 0]}))
    for pause_ms in (2000, 4000, 8000, 16_000):
        await turns(20)
        assert not task.done()
        stage.clock.advance(pause_ms)
    (topic,) = (await task).topics
    assert [(each.partition_index, each.start_offset, each.error_code) for each in topic.partitions] == [
        (0, 7, ErrorCode.NONE),
        (9, -1, ErrorCode.NONE),
    ]


async def test_described_topics_are_in_the_order_of_the_answer_of_the_persister(stage: Stage) -> None:
    """Each partition once, as a hash table has them; unknown topics come behind, as often as they are named."""
    request = {"nope": [3, 1, 3], "foo": [1, 0, 1]}
    group = await describe(stage, request)
    assert [(topic.topic_name, [each.partition_index for each in topic.partitions]) for topic in group.topics] == [
        ("foo", [0, 1]),
        ("nope", [3, 1, 3]),
    ]


async def test_an_entry_without_partitions_fails_the_group(stage: Stage) -> None:
    """Also beside one with partitions of the same topic."""
    topic = DescribeShareGroupOffsetsRequestTopic
    for second in ([], [1]):
        group = DescribeShareGroupOffsetsRequestGroup("g", [topic("foo", [0]), topic("foo", second)])
        answer = await stage.ask(describe_share_group_offsets.API, DescribeShareGroupOffsetsRequest([group]), 1)
        assert [each.error_code for each in answer.groups] == [
            ErrorCode.NONE if second else ErrorCode.UNKNOWN_SERVER_ERROR
        ]


async def test_SHR_34_members_prevent_changes(stage: Stage) -> None:
    """Changes of both kinds; without members they succeed again."""
    assert await join(stage) is ErrorCode.NONE
    await stage.settle()
    assert (await alter(stage, {"foo": {0: 7}})).error_code is ErrorCode.NON_EMPTY_GROUP
    refused = await delete(stage, "foo")
    assert (refused.error_code, refused.error_message) == (ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")
    assert await join(stage, -1) is ErrorCode.NONE
    assert codes(await alter(stage, {"foo": {0: 7}})) == {"foo": {0: ErrorCode.NONE}}


async def test_SHR_36_deleted_offsets(stage: Stage) -> None:
    """Topics with a state, topics without one, unknown topics; and absent groups."""
    absent = await delete(stage, "foo", "nope")
    assert (absent.error_code, absent.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group g not found.")
    await alter(stage, {"foo": {0: 7, 1: 3}})
    answer = await delete(stage, "foo", "bar", "nope")
    assert [(each.topic_name, each.error_code, each.error_message) for each in answer.responses] == [
        ("foo", ErrorCode.NONE, None),
        ("bar", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "There is no offset information to delete."),
        ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."),
    ]
    assert not stage.coordinators.share_states[0].machine.states
    assert not (await describe(stage, None)).topics


async def test_state_that_cannot_be_deleted_or_created(stage: Stage) -> None:
    """Its error is the topic's or the partition's; a deletion can be repeated."""
    await alter(stage, {"foo": {0: 7}})
    stage.share_log.refuse = ErrorCode.MESSAGE_TOO_LARGE
    (answer,) = (await delete(stage, "foo")).responses
    assert answer.error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    stage.share_log.refuse = None
    (answer,) = (await delete(stage, "foo")).responses
    assert answer.error_code is ErrorCode.NONE
    stage.share_log.refuse = ErrorCode.MESSAGE_TOO_LARGE
    assert codes(await alter(stage, {"foo": {1: 7}})) == {"foo": {1: ErrorCode.UNKNOWN_SERVER_ERROR}}


async def test_permissions_on_groups_and_topics(stage: Stage) -> None:
    """Hidden topics are left out of a list, and refused by name."""
    read, remove, see = (AclOperation.READ, "g"), (AclOperation.DELETE, "g"), (AclOperation.DESCRIBE, "g")
    refused = ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert (await alter(stage, {"foo": {0: 7}}, [read])).error_code is refused
    assert (await delete(stage, "foo", denied=[remove])).error_code is refused
    group = await describe(stage, None, [see])
    assert (group.error_code, group.error_message) == (refused, None)
    await alter(stage, {"foo": {0: 7}})
    topic = [(AclOperation.READ, "foo"), (AclOperation.DESCRIBE, "foo")]
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert codes(await alter(stage, {"foo": {0: 7}}, topic)) == {"foo": {0: denied}}
    assert [each.error_code for each in (await delete(stage, "foo", denied=topic)).responses] == [denied]
    assert not (await describe(stage, None, topic)).topics
    (named,) = (await describe(stage, {"foo": [0]}, topic)).topics
    assert [(each.start_offset, each.lag, each.error_code) for each in named.partitions] == [(-1, -1, denied)]


async def test_SHR_40_without_the_feature(stage: Stage) -> None:
    """Without share.version all three APIs of share group offsets refuse."""
    stage.image.features["share.version"] = 0
    assert (await alter(stage, {"foo": {0: 7}})).error_code is ErrorCode.UNSUPPORTED_VERSION
    assert (await delete(stage, "foo")).error_code is ErrorCode.UNSUPPORTED_VERSION
    assert (await describe(stage, None)).error_code is ErrorCode.UNSUPPORTED_VERSION


async def test_offsets_are_altered_while_the_cluster_changes(stage: Stage) -> None:
    """The answer is about the topics as they were when the request came, wherever the group's coordinator is by now."""
    coordinator = stage.coordinators.share_states.pop(0)
    altering = [asyncio.create_task(alter(stage, {name: {0: 7, 9: 1}})) for name in ("foo", "bar")]
    await turns(20)
    stage.forget_topic("foo")
    stage.coordinators.groups.clear()
    stage.coordinators.share_states[0] = coordinator
    for pause_ms in (2000, 4000, 8000, 16_000):
        stage.clock.advance(pause_ms)
        await turns(20)
    answers = [await each for each in altering]
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [each.error_code for each in answers] == [ErrorCode.NONE] * 2
    assert codes(answers[0]) == {"foo": {0: unknown, 9: unknown}}
    assert codes(answers[1]) == {"bar": {0: ErrorCode.NONE, 9: unknown}}
