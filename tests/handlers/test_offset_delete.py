"""OffsetDelete at the handler: transactions E.4."""

from typing import Any

from broker.handlers import offset_commit
from broker.handlers.offset_delete import API
from broker.request.context import AclOperation
from protocol.errors import ErrorCode
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tests.handlers.group_harness import Stage


def request(group_id: str = "g", **topics: list[int]) -> OffsetDeleteRequest:
    """Partitions by topic."""
    return OffsetDeleteRequest(
        group_id,
        [OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition(p) for p in of]) for name, of in topics.items()],
    )


def codes(answer: Any) -> tuple[int, dict[str, dict[int, int]]]:
    """The code at the top, and those by topic and partition."""
    topics = {t.name: {p.partition_index: int(p.error_code) for p in t.partitions} for t in answer.topics}
    return int(answer.error_code), topics


async def with_offset() -> Stage:
    """Group g has committed in foo-0."""
    stage = Stage()
    topics = [OffsetCommitRequestTopic("foo", [OffsetCommitRequestPartition(0, 5)])]
    await stage.ask(offset_commit.API, OffsetCommitRequest("g", topics=topics), 9)
    return stage


async def test_a_groups_error_is_answered_without_topics() -> None:
    """The group's error is at the top level; a subscribed topic has its error on the partition."""
    stage = await with_offset()
    assert codes(await stage.ask(API, request("", foo=[0]), 0)) == (24, {})
    assert codes(await stage.ask(API, request(foo=[0]), 0, {(AclOperation.DELETE, "g")})) == (30, {})
    assert codes(await stage.ask(API, request("none", foo=[0], none=[1]), 0)) == (69, {})
    await stage.join("m")
    subscribed = await stage.ask(API, request("m", foo=[0]), 0)
    assert codes(subscribed) == (0, {"foo": {0: int(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)}})
    stage.coordinators.groups.clear()
    assert codes(await stage.ask(API, request(foo=[0]), 0)) == (16, {})
    assert codes(await stage.ask(API, request(none=[0]), 0)) == (
        16,
        {},
    )  # also with no partition left, the coordinator is asked
