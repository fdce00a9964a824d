"""LeaveGroup, and what is left of a group (groups A.9, A.13)."""

import pytest

from broker.coordination.group.classic.states import State
from broker.coordination.group.offsets.expiry import EXPIRY_TIMER
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.group import GroupMetadata
from protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember
from protocol.messages.leave_group import MemberIdentity
from tests.coordination.group.harness import START_MS, Client, Context, G, assembled, stable


def test_CLS_30_an_instance_id_is_enough_to_leave() -> None:
    """An administrator removes a static member without knowing its member id."""
    context = Context()
    _, static = stable(Client(context), Client(context, instance_id="i1"))
    answer = context.leave(MemberIdentity("", "i1"), MemberIdentity("", "i9"), MemberIdentity(""))
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert [member.error_code for member in answer.members] == [ErrorCode.NONE, unknown, unknown]
    assert answer.members[0].group_instance_id == "i1"
    assert static.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_leave_that_cannot_be_remembered_is_refused() -> None:
    """The client gets the append's error."""
    context = Context()
    (client,) = stable(Client(context))
    context.refuse_append = ErrorCode.NOT_ENOUGH_REPLICAS
    assert isinstance(context.leave(client.identity()), KafkaError)


def test_a_parked_join_is_answered_although_its_groups_end_cannot_be_remembered() -> None:
    """All have left, one of them while it waits for the others; an administrator removes members so."""
    context = Context()
    first, second = stable(Client(context), Client(context))
    first.start()
    context.refuse_append = ErrorCode.MESSAGE_TOO_LARGE
    assert isinstance(context.leave(first.identity(), second.identity()), KafkaError)
    assert first.parked.code is ErrorCode.UNKNOWN_MEMBER_ID
    assert context.timers.keys() == {EXPIRY_TIMER}


def test_a_parked_join_of_a_member_that_leaves_is_answered() -> None:
    """UNKNOWN_MEMBER_ID without an id; the join phase ends if all others are there."""
    context = Context()
    first, second, third = stable(Client(context), Client(context), Client(context))
    first.start()
    second.start()
    context.leave(second.identity(), third.identity())
    assert second.parked.code is ErrorCode.UNKNOWN_MEMBER_ID
    assert second.parked.message.member_id == ""
    assert [member.member_id for member in first.joined().members] == [first.member_id]


def test_an_id_that_was_handed_out_can_leave() -> None:
    """It is forgotten, its timer too; quirk: a Stable group rebalances for it."""
    context = Context()
    (first,) = stable(Client(context))
    pending = Client(context)
    pending.member_id = pending.ask().message.member_id
    answer = context.leave(pending.identity())
    assert answer.members[0].error_code is ErrorCode.NONE
    assert context.due_in("member", G, pending.member_id) is None
    assert first.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS


def test_leaving_does_not_end_the_initial_delay() -> None:
    """The last member goes, the window stays open."""
    context = Context({"group.initial.rebalance.delay.ms": 3000})
    client = Client(context).start()
    context.leave(client.identity())
    assert client.parked.code is ErrorCode.UNKNOWN_MEMBER_ID
    assert context.group().state is State.PREPARING_REBALANCE
    context.advance(3000)
    assert context.records[-1] == GroupMetadata(G, "consumer", 1, None, None, START_MS + 3000)


def test_a_leave_while_the_group_completes_rebalances() -> None:
    """Members that wait for assignments get REBALANCE_IN_PROGRESS."""
    context = Context()
    _, second, third = assembled(Client(context), Client(context), Client(context))
    waiting = second.sync()
    context.leave(third.identity())
    assert waiting.code is ErrorCode.REBALANCE_IN_PROGRESS


def test_an_evicted_member_is_gone() -> None:
    """Steering: as if the member had left; strangers are refused."""
    context = Context()
    first, second = stable(Client(context), Client(context))
    context.perform(context.machine.evict(G, second.member_id, context.now_ms))
    assert first.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    with pytest.raises(KafkaError, match="UNKNOWN_MEMBER_ID"):
        context.machine.evict(G, "zz", context.now_ms)
    with pytest.raises(KafkaError, match="GROUP_ID_NOT_FOUND"):
        context.machine.evict("none", "zz", context.now_ms)


def test_a_rebalance_can_be_asked_for() -> None:
    """By the control plane: members get REBALANCE_IN_PROGRESS; nothing happens in an Empty group."""
    context = Context()
    (client,) = stable(Client(context))
    context.perform(context.machine.rebalance(G, context.now_ms))
    assert client.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    context.commit("foo", {0: 1}, group_id="simple")
    assert not context.machine.rebalance("simple", context.now_ms).effects


def test_a_stable_group_is_described_with_its_members() -> None:
    """Metadata of the chosen protocol and the assignment of each."""
    context = Context()
    (client,) = stable(Client(context, [("range", b"r"), ("sticky", b"s")], instance_id="i1"))
    assert context.machine.administration.describe(G) == DescribedGroup(
        group_id=G,
        group_state="Stable",
        protocol_type="consumer",
        protocol_data="range",
        members=[DescribedGroupMember(client.member_id, "client", "/127.0.0.1", b"r", b"a0", "i1")],
    )


def test_a_rebalancing_group_is_described_without_metadata() -> None:
    """Only Stable groups are described with protocol and metadata; assignments are kept."""
    context = Context()
    client, _ = stable(Client(context), Client(context))
    client.start()
    described = context.machine.administration.describe(G)
    assert (described.group_state, described.protocol_data) == ("PreparingRebalance", "")
    assert [member.member_metadata for member in described.members] == [b"", b""]
    assert {member.member_assignment for member in described.members} == {b"a0", b"a1"}
