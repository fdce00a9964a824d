"""JoinGroup: who may join, the response, and when a join starts a rebalance (groups A.4, A.6)."""

import pytest

from broker.coordination.group.classic.states import State
from protocol.errors import ErrorCode
from protocol.log_records.group import GroupMetadata
from protocol.messages.join_group import JoinGroupResponse
from tests.coordination.group.harness import START_MS, Client, Context, G, assembled, stable


@pytest.mark.parametrize(("protocol", "protocol_type"), [("roundrobin", "consumer"), ("range", "connect")])
def test_CLS_08_a_member_without_a_common_protocol_is_refused(protocol: str, protocol_type: str) -> None:
    """Another protocol type, or no protocol in common: INCONSISTENT_GROUP_PROTOCOL, with the id of the request."""
    context = Context()
    (client,) = stable(Client(context))
    stranger = Client(context, [(protocol, b"meta")], protocol_type=protocol_type)
    answer = stranger.ask()
    assert (answer.code, answer.message.member_id) == (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "")
    stranger.member_id = client.member_id
    assert stranger.ask().message.member_id == client.member_id


@pytest.mark.parametrize(("protocol_type", "protocols"), [("", [("range", b"")]), ("consumer", [])])
def test_a_failed_first_join_leaves_an_empty_group(protocol_type: str, protocols: list[tuple[str, bytes]]) -> None:
    """Quirk: the group is remembered although no member has joined it (groups A.4 J5)."""
    context = Context()
    client = Client(context, protocols, protocol_type=protocol_type)
    assert client.ask().code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert context.records == [GroupMetadata(G, "", 0, None, None, START_MS)]
    assert context.group().state is State.EMPTY


@pytest.mark.parametrize(("names", "winner"), [(("sticky", "range"), "sticky"), (("a", "b"), "a")])
def test_a_tied_vote_is_decided_by_the_order_of_a_java_map(names: tuple[str, str], winner: str) -> None:
    """The first in the order of a HashMap wins, not the first to join (groups 0.8)."""
    context = Context()
    first, second = names
    clients = assembled(
        Client(context, [(second, b""), (first, b"")]),
        Client(context, [(first, b""), (second, b"")]),
    )
    assert clients[0].parked.message.protocol_name == winner


def test_a_protocol_that_is_offered_twice_is_not_common() -> None:
    """It counts twice: it is not chosen, and does not let another member in."""
    context = Context()
    (client,) = assembled(Client(context, [("range", b"1"), ("range", b"2"), ("sticky", b"3")]))
    assert client.parked.message.protocol_name == "sticky"
    assert [member.metadata for member in client.parked.message.members] == [b"3"]
    assert Client(context, [("range", b"")]).ask().code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_member_with_a_single_protocol_twice_is_answered() -> None:
    """A join with one protocol twice is answered, where Kafka never does."""
    (client,) = assembled(Client(Context(), [("range", b"1"), ("range", b"2")]))
    assert client.parked.message.protocol_name == "range"
    assert [member.metadata for member in client.parked.message.members] == [b"1"]


def test_a_changed_member_rebalances_while_the_group_completes() -> None:
    """Other protocols need another generation; parked SyncGroups get REBALANCE_IN_PROGRESS (groups A.4 J4.5)."""
    context = Context()
    leader, follower = assembled(Client(context), Client(context))
    waiting = follower.sync()
    leader.protocols = [("range", b"changed")]
    assert leader.start().parked.parked
    assert waiting.code is ErrorCode.REBALANCE_IN_PROGRESS
    follower.start()
    assert leader.joined().generation_id == follower.joined().generation_id == 3


def test_a_changed_follower_rebalances() -> None:
    """Other protocols of a follower need another generation (groups A.4 J4.6)."""
    context = Context()
    leader, follower = stable(Client(context), Client(context))
    follower.protocols = [("range", b"other")]
    assert follower.start().parked.parked
    assert leader.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_second_join_of_a_parked_member_takes_its_place() -> None:
    """Quirk: the first one is never answered (groups A.4 J4.4)."""
    context = Context()
    leader, follower = stable(Client(context), Client(context))
    first = leader.start().parked
    second = leader.start().parked
    follower.start()
    assert first.parked
    assert second.code is ErrorCode.NONE


def test_an_id_that_was_handed_out_is_not_for_static_members() -> None:
    """Quirk: with an instance id, an id that is pending is an internal error (groups A.4 J4.2)."""
    context = Context()
    client = Client(context)
    client.member_id = client.ask().message.member_id
    client.instance_id = "i1"
    assert client.ask().code is ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize(
    ("member_id", "instance_id", "code"),
    [
        ("zz", None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("zz", "i1", ErrorCode.FENCED_INSTANCE_ID),
        ("zz", "i9", ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_rejoining_member_is_fenced(member_id: str, instance_id: str | None, code: ErrorCode) -> None:
    """UNKNOWN_MEMBER_ID for an unknown id, FENCED_INSTANCE_ID for another member's instance id (groups A.4 J4.3)."""
    context = Context()
    stable(Client(context), Client(context, instance_id="i1"))
    answer = Client(context, member_id=member_id, instance_id=instance_id).ask()
    assert (answer.code, answer.message.member_id) == (code, member_id)


def test_an_empty_group_knows_no_member() -> None:
    """UNKNOWN_MEMBER_ID, as no member is left (groups A.4 J4.7)."""
    context = Context()
    (client,) = stable(Client(context))
    context.leave(client.identity())
    assert client.ask().code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_takes_as_many_members_as_the_group_may_have() -> None:
    """Ids that were handed out do not count; the last to join is refused and forgotten (groups A.4 J2)."""
    context = Context({"group.max.size": 1, "group.initial.rebalance.delay.ms": 100})
    first, second = Client(context), Client(context)
    second.member_id = second.ask().message.member_id
    first.start()
    assert second.ask().code is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert not context.group().pending
    context.advance(100)
    assert first.joined().generation_id == 1


def test_a_returning_member_has_its_old_session_first() -> None:
    """The timer runs for the old timeout, the next one for the new (groups A.6.1)."""
    context = Context()
    _, _ = stable(Client(context), Client(context, instance_id="i1"))
    returned = Client(context, instance_id="i1", session_ms=20_000)
    returned.join()
    assert context.due_in("member", G, returned.member_id) == 10_000
    returned.heartbeat()
    assert context.due_in("member", G, returned.member_id) == 20_000


def test_CLS_35_a_static_leader_returns() -> None:
    """From v9 on it leads without assigning; v8 cannot skip it, and so gets another leader's id."""
    context = Context()
    static, follower = stable(Client(context, instance_id="i1"), Client(context))
    returned = Client(context, instance_id="i1")
    answer = returned.join()
    assert (answer.generation_id, answer.leader, answer.skip_assignment) == (2, returned.member_id, True)
    assert {member.member_id for member in answer.members} == {returned.member_id, follower.member_id}
    old = Client(context, instance_id="i1", version=8)
    answer = old.join()
    assert (answer.leader, answer.members, answer.skip_assignment) == (returned.member_id, (), False)
    assert old.member_id not in (static.member_id, returned.member_id)
    assert follower.heartbeat() is ErrorCode.NONE


def test_a_static_member_that_returns_while_the_group_completes_rebalances() -> None:
    """Its parked SyncGroup is fenced (groups A.6.3)."""
    context = Context()
    leader, static = assembled(Client(context), Client(context, instance_id="i1"))
    waiting = static.sync()
    returned = Client(context, instance_id="i1").start()
    assert waiting.code is ErrorCode.FENCED_INSTANCE_ID
    leader.start()
    assert leader.joined().generation_id == returned.joined().generation_id == 3


@pytest.mark.parametrize(
    ("refusal", "answered"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_return_whose_record_is_refused_has_not_happened(refusal: ErrorCode, answered: ErrorCode) -> None:
    """The old id is a member again, with its protocols and timeouts, and leads if it led (groups A.6.2)."""
    context = Context()
    static, follower = stable(Client(context, instance_id="i1"), Client(context))
    context.refuse_append = refusal
    answer = Client(context, instance_id="i1", session_ms=20_000).ask()
    assert answer.message == JoinGroupResponse(answered, 2, "range", static.member_id, protocol_type="consumer")
    assert static.heartbeat() is follower.heartbeat() is ErrorCode.NONE
    assert context.group().leader == static.member_id
    assert context.due_in("member", G, static.member_id) == 10_000
    assert static.sync().message.assignment == b"a0"


@pytest.mark.parametrize("version", [3, 9])
def test_a_group_whose_record_is_refused_does_not_exist(version: int) -> None:
    """The parked join gets the error; v4 and later get their member id first, without a record (groups A.4 J5)."""
    context = Context(refuse_append=ErrorCode.NOT_ENOUGH_REPLICAS)
    answer = Client(context, version=version).ask()
    reported = ErrorCode.COORDINATOR_NOT_AVAILABLE if version == 3 else ErrorCode.MEMBER_ID_REQUIRED
    assert answer.code is reported
    assert not context.machine.groups
