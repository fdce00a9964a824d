"""OffsetFetch at the handler: groups B.2, by version."""

import asyncio
from typing import Any
from uuid import UUID

import pytest

from broker.handlers import offset_commit
from broker.handlers.offset_fetch import API
from broker.request.context import AclOperation
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.handlers.group_harness import Stage
from tests.versions import every_version


async def with_offsets(*groups: str) -> Stage:
    """Groups that have committed 5 in foo-0 and 7 in bar-0."""
    stage = Stage()
    for group_id in groups:
        topics = [
            OffsetCommitRequestTopic(name, [OffsetCommitRequestPartition(0, offset, "note")])
            for name, offset in (("foo", 5), ("bar", 7))
        ]
        await stage.ask(offset_commit.API, OffsetCommitRequest(group_id, topics=topics), 9)
    return stage


def wanted(*topics: tuple[str | UUID, list[int]], group_id: str = "g") -> OffsetFetchRequestGroup:
    """One group's topics by name or id; without any, all."""
    requested_topics = [
        OffsetFetchRequestTopics(
            name if isinstance(name, str) else "", partitions, name if isinstance(name, UUID) else None
        )
        for name, partitions in topics
    ]
    return OffsetFetchRequestGroup(group_id, requested_topics or None)


def offsets(group: Any) -> list[tuple[str | UUID, dict[int, int]]]:
    """Topics by name or id; per partition the offset, or the code with a minus of a hundred."""
    return [
        (
            topic.topic_id or topic.name,
            {p.partition_index: -100 - p.error_code if p.error_code else p.committed_offset for p in topic.partitions},
        )
        for topic in group.topics
    ]


@every_version(API, until=9)
async def test_offsets_are_fetched_by_name(version: int) -> None:
    """One group up to version 7, many from 8 on; what was not committed is -1."""
    stage = await with_offsets("g")
    answer = await stage.ask(API, OffsetFetchRequest(groups=[wanted(("foo", [0, 1]), ("none", [0]))]), version)
    (group,) = answer.groups
    assert offsets(group) == [("foo", {0: 5, 1: -1}), ("none", {0: -1})]
    assert [partition.metadata for partition in group.topics[0].partitions] == ["note", ""]


@every_version(API, since=2)
async def test_all_offsets_are_fetched(version: int) -> None:
    """OffsetFetch with null topics returns all offsets of the group."""
    stage = await with_offsets("g")
    (group,) = (await stage.ask(API, OffsetFetchRequest(groups=[wanted()]), version)).groups
    foo, bar = (stage.foo, stage.bar) if version >= 10 else ("foo", "bar")
    assert offsets(group) == [(foo, {0: 5}), (bar, {0: 7})]


async def test_offsets_are_fetched_by_id() -> None:
    """Version 10; unknown ids come last, with 100."""
    stage = await with_offsets("g")
    stranger = UUID(int=99)
    request = OffsetFetchRequest(groups=[wanted((stranger, [0]), (stage.foo, [0, 1]), (stage.bar, [0]))])
    (group,) = (await stage.ask(API, request, 10)).groups
    assert offsets(group) == [(stage.foo, {0: 5, 1: -1}), (stage.bar, {0: 7}), (stranger, {0: -200})]


@pytest.mark.parametrize("version", [9, 10])
async def test_a_topic_one_may_not_describe(version: int) -> None:
    """TOPIC_AUTHORIZATION_FAILED where it was named, after the others; hidden where all were asked for."""
    stage = await with_offsets("g")
    foo, bar = (stage.foo, stage.bar) if version >= 10 else ("foo", "bar")
    denied = {(AclOperation.DESCRIBE, "foo")}
    named = OffsetFetchRequest(groups=[wanted((foo, [0, 1]), (bar, [0]))])
    (group,) = (await stage.ask(API, named, version, denied)).groups
    assert offsets(group) == [(bar, {0: 7}), (foo, {0: -129, 1: -129})]
    (group,) = (await stage.ask(API, OffsetFetchRequest(groups=[wanted()]), version, denied)).groups
    assert offsets(group) == [(bar, {0: 7})]


@every_version(API)
async def test_a_groups_error_is_where_the_version_has_it(version: int) -> None:
    """On each partition up to version 1, at the top up to 7, in the group from 8 on."""
    stage = await with_offsets("g")
    stage.coordinators.groups.clear()
    named = stage.foo if version >= 10 else "foo"
    request = OffsetFetchRequest(groups=[wanted((named, [0, 1]))])
    (group,) = (await stage.ask(API, request, version)).groups
    if version <= 1:
        assert offsets(group) == [("foo", {0: -116, 1: -116})]
    else:
        assert (group.error_code, group.topics) == (ErrorCode.NOT_COORDINATOR, ())
    refused = API.refuse(request, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR), version)
    assert refused.groups[0].error_code is ErrorCode.UNKNOWN_SERVER_ERROR


async def test_an_absent_group_and_the_empty_name_have_no_offsets() -> None:
    """An absent group and the empty id return no offsets and no error."""
    stage = Stage()
    request = OffsetFetchRequest(groups=[wanted(("foo", [0]), group_id=""), wanted(group_id="none")])
    empty, absent = (await stage.ask(API, request, 9)).groups
    assert (empty.error_code, offsets(empty)) == (ErrorCode.NONE, [("foo", {0: -1})])
    assert (absent.error_code, offsets(absent)) == (ErrorCode.NONE, [])


async def test_stable_offsets_wait_for_what_is_written() -> None:
    """Until it is replicated, NOT_COORDINATOR after a while; others are answered from the replicas (groups B.2)."""
    stage = await with_offsets("g")
    log = stage.log_of("g")
    log.replicated_to = len(log.records)
    topics = [OffsetCommitRequestTopic("foo", [OffsetCommitRequestPartition(0, 6)])]
    commit = asyncio.ensure_future(stage.ask(offset_commit.API, OffsetCommitRequest("g", topics=topics), 9))
    await asyncio.sleep(0)
    request = OffsetFetchRequest(groups=[wanted(("foo", [0]), group_id=each) for each in ("g", "h")])
    (group, _) = (await stage.ask(API, request, 9)).groups
    assert offsets(group) == [("foo", {0: 5})]
    request.require_stable = True
    stable_fetch = asyncio.ensure_future(stage.ask(API, request, 9))
    await asyncio.sleep(0)
    assert (commit.done(), stable_fetch.done()) == (False, False)
    stage.clock.advance(5_000)
    assert [int(group.error_code) for group in (await stable_fetch).groups] == [16, 0]
    stable = asyncio.ensure_future(stage.ask(API, request, 9))
    await asyncio.sleep(0)
    log.replicate(log.replicated_to + 1)
    assert offsets((await stable).groups[0]) == [("foo", {0: 6})]
