"""The table of kinds: each record and each request finds the rules of its kind, also of one that is added."""

from typing import Any, cast, get_args

import pytest

from broker.coordination.group.group import Group, Groups, GroupType
from broker.coordination.group.machine import GroupMachine
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.group import GroupRecord, OffsetCommit, OffsetCommitTombstone
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest
from protocol.messages.leave_group import LeaveGroupRequest
from protocol.messages.sync_group import SyncGroupRequest
from tests.coordination.group.harness import Context


class Record:
    """A record of the added kind."""


class AddedGroup:
    """A group of the added kind; only what the table asks of it."""

    type = GroupType.SHARE
    is_empty = True


class AddedKind:
    """A kind that notes which of its rules were applied."""

    type = GroupType.SHARE
    record_classes = (Record,)
    makes_way = False

    def __init__(self) -> None:
        self.applied: list[str] = []

    @property
    def classic_requests(self) -> Any:
        """Its own."""
        return self

    def __getattr__(self, name: str) -> Any:
        return lambda *_: self.applied.append(name)


@pytest.fixture
def machine() -> GroupMachine:
    """One with a group of the added kind."""
    return Context().machine


@pytest.fixture
def added(machine: GroupMachine) -> AddedKind:
    """The kind, in the table."""
    kind = AddedKind()
    machine._kinds = {**machine._kinds, kind.type: kind}
    machine.groups["s"] = cast("Group", AddedGroup())
    return kind


def test_a_kind_that_is_added_gets_its_requests_records_and_steering(machine: GroupMachine, added: AddedKind) -> None:
    """A new kind of group needs no change of the other kinds."""
    joiner: Any = None
    machine.join(JoinGroupRequest("s"), joiner, 0, "a")
    machine.sync(SyncGroupRequest("s"), 0, "b")
    machine.heartbeat(HeartbeatRequest("s"), 0, "c")
    machine.leave(LeaveGroupRequest("s"), 0, "d")
    machine.rebalance("s", 0)
    machine.evict("s", "m", 0)
    machine.replay(cast("GroupRecord", Record()), 0, None)
    machine.loaded(0)
    machine.unloaded()
    assert added.applied == [
        "join", "sync", "heartbeat", "leave", "rebalance", "evict", "replay", "loaded", "unloaded"]  # fmt: skip


def test_other_groups_are_not_its_business(machine: GroupMachine, added: AddedKind) -> None:
    """A group that is not there has the classic kind's answer, or none."""
    with pytest.raises(KafkaError) as refused:
        machine.heartbeat(HeartbeatRequest("t"), 0, "c")
    assert refused.value.code is ErrorCode.UNKNOWN_MEMBER_ID
    with pytest.raises(KafkaError) as refused:
        machine.rebalance("t", 0)
    assert refused.value.code is ErrorCode.GROUP_ID_NOT_FOUND
    assert added.applied == []


def test_each_record_of_groups_has_exactly_one_kind(machine: GroupMachine) -> None:
    """Records of offsets are the exception: groups of all kinds have them."""
    classes = set(get_args(GroupRecord)) - {OffsetCommit, OffsetCommitTombstone}
    owned = [each for kind in machine._kinds.values() for each in kind.record_classes]
    assert len(classes) >= 3
    assert sorted(map(repr, owned)) == sorted(map(repr, classes))


def test_every_way_to_change_the_groups_changes_the_order_in_which_they_are_listed() -> None:
    """Kafka's table is kept beside the groups: none of the methods of a mapping passes by it."""
    groups, group = Groups(), cast("Group", AddedGroup())
    groups.update(dict.fromkeys("abcdef", group))
    groups.setdefault("g", group)
    assert groups.pop("a") is groups.pop("b") is group
    groups.popitem()
    assert sorted(groups._table) == sorted(groups)
    assert len(groups.in_table_order()) == len(groups) == 4
    with pytest.raises(KeyError):
        groups.pop("a")
    groups.clear()
    assert groups.in_table_order() == []
