"""OffsetCommit at the handler: groups B.1, by version."""

from collections.abc import Sequence
from typing import Any, cast
from uuid import UUID

import pytest

from broker.handlers.offset_commit import API
from broker.request.context import AclOperation
from broker.request.groups import merge_topics
from protocol.errors import ErrorCode
from protocol.log_records.group import OffsetCommit, decode
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.handlers.group_harness import START_MS, Stage
from tests.versions import every_version


def request(*topics: tuple[str | UUID, dict[int, int]], group_id: str = "g", **fields: Any) -> OffsetCommitRequest:
    """Topics by name or id, each with offsets by partition."""
    return OffsetCommitRequest(
        group_id,
        topics=[
            OffsetCommitRequestTopic(
                name if isinstance(name, str) else "",
                [OffsetCommitRequestPartition(partition, offset) for partition, offset in offsets.items()],
                name if isinstance(name, UUID) else None,
            )
            for name, offsets in topics
        ],
        **fields,
    )


def codes(answer: Any) -> list[tuple[str | UUID, dict[int, int]]]:
    """Topics by name or id, each with codes by partition."""
    return [
        (topic.topic_id or topic.name, {p.partition_index: int(p.error_code) for p in topic.partitions})
        for topic in answer.topics
    ]


@every_version(API)
async def test_OFF_01_offsets_are_committed(version: int) -> None:
    """By name, or by id from version 10 on; either way the id is remembered."""
    stage = Stage()
    named: str | UUID = stage.foo if version >= 10 else "foo"
    answer = await stage.ask(API, request((named, {0: 5, 2: 7})), version)
    assert codes(answer) == [(named, {0: 0, 2: 0})]
    records = [decode(*raw) for raw in stage.log_of("g").records]
    assert records == [
        OffsetCommit("g", "foo", partition, offset, -1, "", START_MS, topic_id=stage.foo)
        for partition, offset in {0: 5, 2: 7}.items()
    ]


@pytest.mark.parametrize("version", [9, 10])
async def test_the_request_stays_as_it_came(version: int) -> None:
    """The journal and the timelines hold the same object: names and ids are filled in on a copy."""
    stage = Stage()
    sent = request((stage.foo if version >= 10 else "foo", {0: 5, 99: 7}))
    before = repr(sent)
    answer = await API.handle(sent, stage.context(API, version))
    assert [p.error_code for topic in answer.topics for p in topic.partitions] == [3, 0]
    assert repr(sent) == before


async def test_OFF_02_a_generation_needs_a_group() -> None:
    """ILLEGAL_GENERATION up to version 8, GROUP_ID_NOT_FOUND from 9 on, on every partition."""
    stage = Stage()
    commit = request(("foo", {0: 5, 1: 6}), generation_id_or_member_epoch=3, member_id="m")
    assert codes(await stage.ask(API, commit, 8)) == [("foo", {0: 22, 1: 22})]
    assert codes(await stage.ask(API, commit, 9)) == [("foo", {0: 69, 1: 69})]


async def test_what_is_not_there_cannot_be_committed() -> None:
    """Unknown topics and partitions have their error; the rest is committed, one entry per topic."""
    stage = Stage()
    answer = await stage.ask(API, request(("foo", {0: 5, 9: 9}), ("none", {0: 1}), ("bar", {0: 2})), 9)
    assert codes(answer) == [("foo", {9: 3, 0: 0}), ("none", {0: 3}), ("bar", {0: 0})]
    assert len(stage.log_of("g").records) == 2


async def test_committing_needs_read_on_group_and_topic() -> None:
    """The group's refusal is on every partition, a topic's on its own, whether or not it exists."""
    stage = Stage()
    commit = request(("foo", {0: 5}), ("none", {0: 1}), ("bar", {0: 2}))
    denied = await stage.ask(API, commit, 9, {(AclOperation.READ, "g")})
    assert codes(denied) == [("foo", {0: 30}), ("none", {0: 30}), ("bar", {0: 30})]
    topics = {(AclOperation.READ, "foo"), (AclOperation.READ, "none")}
    assert codes(await stage.ask(API, commit, 9, topics)) == [("foo", {0: 29}), ("none", {0: 29}), ("bar", {0: 0})]


async def test_the_coordinator_is_asked_only_for_what_is_left() -> None:
    """With nothing left, the request is answered though no broker coordinates the group."""
    stage = Stage()
    stage.coordinators.groups.clear()
    assert codes(await stage.ask(API, request(("none", {0: 1})), 9)) == [("none", {0: 3})]
    assert codes(await stage.ask(API, request(), 9)) == []
    mixed = await stage.ask(API, request(("foo", {0: 5, 9: 9})), 9)
    assert codes(mixed) == [("foo", {9: 3, 0: 16})]


@pytest.mark.parametrize(
    ("refusal", "answered"),
    [
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 15),
        (ErrorCode.REQUEST_TIMED_OUT, 15),
        (ErrorCode.NOT_ENOUGH_REPLICAS, 15),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, 16),
        (ErrorCode.KAFKA_STORAGE_ERROR, 16),
        (ErrorCode.MESSAGE_TOO_LARGE, -1),
        (ErrorCode.RECORD_LIST_TOO_LARGE, -1),
        (ErrorCode.INVALID_FETCH_SIZE, -1),
        (ErrorCode.NETWORK_EXCEPTION, 14),
        (ErrorCode.INVALID_REQUIRED_ACKS, 21),
    ],
)
async def test_the_logs_errors_have_other_names(refusal: ErrorCode, answered: int) -> None:
    """Coordinators translate them for clients (groups 0.6.3)."""
    stage = Stage()
    stage.log_of("g").refuse = refusal
    assert codes(await stage.ask(API, request(("foo", {0: 5})), 9)) == [("foo", {0: answered})]


class Counted:
    """A topic of an answer that counts the partitions which are put into it."""

    def __init__(self, partitions: Sequence[int], copied: list[int]) -> None:
        self.name, self._partitions, self._copied = "foo", partitions, copied

    @property
    def partitions(self) -> Sequence[int]:
        """As they were put."""
        return self._partitions

    @partitions.setter
    def partitions(self, value: Sequence[int]) -> None:
        self._copied.append(len(value))
        self._partitions = value


def test_a_topic_that_is_named_very_often_is_merged_in_linear_time() -> None:
    """No partition is copied once more for each further entry: a small request would stop the broker for minutes."""
    copied: list[int] = []
    failed: Any = [(Counted((), copied), [number], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for number in range(1000)]
    (merged,) = merge_topics(failed, (), lambda _topic, partitions, _code: cast("Any", Counted(partitions, copied)))
    assert merged.partitions == list(range(1000))
    assert sum(copied) < 10_000
