"""ListGroups at the handler: groups A.13, by version."""

from broker.coordination.coordinators import GROUP_TOPIC
from broker.handlers import delete_groups as deletion
from broker.handlers import offset_commit
from broker.handlers.list_groups import API
from broker.request.context import AclOperation
from protocol.errors import ErrorCode
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.list_groups import ListedGroup, ListGroupsRequest
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.handlers.group_harness import Stage
from tests.versions import every_version


async def peopled() -> Stage:
    """A Stable group s and an Empty one e, in different shards or not."""
    stage = Stage()
    await stage.join("s")
    topics = [OffsetCommitRequestTopic("foo", [OffsetCommitRequestPartition(0, 5)])]
    await stage.ask(offset_commit.API, OffsetCommitRequest("e", topics=topics), 9)
    return stage


async def listed(
    stage: Stage, version: int = 5, denied: set[tuple[AclOperation, str]] | None = None, **filters: list[str]
) -> set[str]:
    """The names listed."""
    answer = await stage.ask(API, ListGroupsRequest(**filters), version, denied or ())
    assert answer.error_code is ErrorCode.NONE
    return {group.group_id for group in answer.groups}


async def test_groups_are_listed_in_the_order_of_their_tables() -> None:
    """Seven partitions in the order of a set, the groups of each in that of a ``TimelineHashMap``, as on 4.4.0."""
    stage = Stage(7)
    topics = [OffsetCommitRequestTopic("foo", [OffsetCommitRequestPartition(0, 5)])]
    for number in range(24):
        await stage.ask(offset_commit.API, OffsetCommitRequest(f"grp{number}", topics=topics), 9)
    groups = (await stage.ask(API, ListGroupsRequest(), 5)).groups
    names = [group.group_id for group in groups]
    assert names[:6] == ["grp21", "grp2", "grp9", "grp14", "grp19", "grp0"]
    order = dict.fromkeys(stage.coordinating_partition(GROUP_TOPIC, name) for name in names)
    assert list(order) == [0, 5, 6, 3, 4, 1, 2]


async def test_a_group_that_is_gone_leaves_the_order() -> None:
    """And one that comes back is found at its place again."""
    stage = await peopled()
    for _ in range(2):
        assert [each.error_code for each in (await stage.ask(deletion.API, DeleteGroupsRequest(["e"]), 2)).results] == [
            ErrorCode.NONE
        ]
        assert await listed(stage) == {"s"}
        topics = [OffsetCommitRequestTopic("foo", [OffsetCommitRequestPartition(0, 5)])]
        await stage.ask(offset_commit.API, OffsetCommitRequest("e", topics=topics), 9)
        assert await listed(stage) == {"s", "e"}


@every_version(API)
async def test_groups_are_listed(version: int) -> None:
    """State from version 4 on, type from 5 on."""
    stage = await peopled()
    answer = await stage.ask(API, ListGroupsRequest(), version)
    states = {"s": "Stable", "e": "Empty"} if version >= 4 else {"s": "", "e": ""}
    kind = "classic" if version >= 5 else ""
    assert sorted(answer.groups, key=lambda group: group.group_id) == [
        ListedGroup("e", "", states["e"], kind),
        ListedGroup("s", "consumer", states["s"], kind),
    ]


async def test_only_what_one_may_describe_is_listed() -> None:
    """The cluster shows all; else each group by itself."""
    stage = await peopled()
    one = {(AclOperation.DESCRIBE, "s")}
    assert await listed(stage, denied=one) == {"s", "e"}
    assert await listed(stage, denied={*one, (AclOperation.DESCRIBE, "kafka-cluster")}) == {"e"}


async def test_a_loading_shard_is_an_error_for_all() -> None:
    """COORDINATOR_LOAD_IN_PROGRESS; a shard that has gone is skipped."""
    stage = await peopled()
    stage.coordinators.groups[0].close()
    stage.coordinators.groups[1].close()
    assert await listed(stage) == set()
    stage.coordinate(0, load=False)
    answer = await stage.ask(API, ListGroupsRequest(), 5)
    assert (answer.error_code, answer.groups) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ())
