"""Refusals name the rule that decided them, whether they are raised or are a reply that something else follows."""

from collections.abc import Callable

import pytest

from broker.coordination.reasons import Refusal
from protocol.errors import ErrorCode
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.leave_group import MemberIdentity
from tests.coordination.group.consumer_harness import Cluster, Consumer
from tests.coordination.group.harness import Answer, Client, Context, G, assembled


def raised(answer: Answer) -> str:
    """The rule of an answer that is a refusal."""
    assert isinstance(answer.message, Refusal)
    assert answer.message.source
    return answer.message.rule


def replied(context: Context) -> str:
    """The rule that came with the last outcome."""
    assert context.last.refusal is not None
    return context.last.refusal.rule


def heartbeat(context: Context, member_id: str, generation: int) -> Answer:
    """Send Heartbeat."""
    request = HeartbeatRequest(G, generation, member_id)
    return context.ask(lambda to: context.machine.heartbeat(request, context.now_ms, to))


def test_classic_requests_that_are_raised() -> None:
    """A stranger, and another generation."""
    context = Context()
    (member,) = assembled(Client(context))
    assert raised(heartbeat(context, "stranger", 1)) == "groups A.8"
    assert raised(heartbeat(context, member.member_id, 7)) == "groups A.8"
    assert raised(member.sync(generation=7)) == "groups A.7.3"
    assert raised(member.sync(protocol_name="other")) == "groups A.7.4"
    member.ask()
    assert context.last.refusal is None  # a request that is accepted


JOINS: list[tuple[Callable[[Context], Client], ErrorCode, str]] = [
    (lambda context: Client(context, member_id="stranger"), ErrorCode.UNKNOWN_MEMBER_ID, "groups A.4 J4.3"),
    (lambda context: Client(context, [("other", b"")]), ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "groups A.4 J3.1"),
    (lambda context: Client(context, group_id="new", member_id="m"), ErrorCode.UNKNOWN_MEMBER_ID, "groups A.4 J1"),
]


@pytest.mark.parametrize(("client", "code", "rule"), JOINS, ids=[rule for _, _, rule in JOINS])
def test_joins_are_refused_by_reply(client: Callable[[Context], Client], code: ErrorCode, rule: str) -> None:
    """A refused join returns the rule that refused it with its outcome."""
    context = Context()
    assembled(Client(context))
    assert (client(context).ask().code, replied(context)) == (code, rule)


def test_other_replies_that_refuse() -> None:
    """A heartbeat during a rebalance has an effect too; each member of a LeaveGroup has an error of its own."""
    context = Context()
    (member,) = assembled(Client(context))
    context.leave(MemberIdentity("stranger"))
    assert replied(context) == "groups A.9.3"
    Client(context).start()
    assert member.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert replied(context) == "groups A.8"


def test_consumer_groups_name_theirs() -> None:
    """The epoch check, the member's look-up, and a field that is missing."""
    cluster = Cluster()
    cluster.create("foo", 1)
    context = Context(topics=cluster)
    member = Consumer(context, "m1")
    member.join()
    assert raised(member.ask(epoch=9)) == "groups C.4 H5"
    assert raised(Consumer(context, "m2").ask(epoch=1)) == "groups C.4 H4"
    assert raised(member.ask(epoch=-3)) == "groups C.2"
