"""What survives a coordinator, and what does not (groups A.12)."""

import random

import pytest

from broker.coordination.group.classic.group import ClassicGroup
from broker.coordination.group.classic.states import State
from broker.coordination.outcome import TransactionalAppend
from protocol.errors import ErrorCode
from protocol.log_records.group import GroupMember, GroupMetadata, GroupMetadataTombstone, OffsetCommit
from tests.coordination.group.harness import START_MS, Client, Context, G, Logged, Marker, assembled, stable
from tests.coordination.group.subscriptions import subscription


def moved(client: Client, context: Context) -> Client:
    """The client, at the new coordinator."""
    client.context = context
    return client


def test_CLS_39_a_stable_group_goes_on() -> None:
    """Same generation and assignments, a fresh session for each member."""
    context = Context()
    clients = stable(Client(context), Client(context, instance_id="i1"))
    context.advance(9000)
    after = context.reloaded()
    first, second = (moved(client, after) for client in clients)
    assert [after.due_in("member", G, client.member_id) for client in clients] == [10_000, 10_000]
    assert first.heartbeat() is second.heartbeat() is ErrorCode.NONE
    assert second.sync().message.assignment == b"a1"
    described, before = (each.machine.administration.describe(G) for each in (after, context))
    assert described == before
    assert after.last.records == ()


def test_CLS_40_a_group_that_was_completing_falls_back() -> None:
    """The last written generation holds: members are fenced, join again, and a new generation follows."""
    context = Context()
    clients = stable(Client(context), Client(context))
    clients[0].start()
    clients[1].start()
    for client in clients:
        client.joined()
    after = context.reloaded()
    first, second = (moved(client, after) for client in clients)
    assert first.sync({}).code is ErrorCode.ILLEGAL_GENERATION
    first.start()
    second.start()
    assert first.joined().generation_id == second.joined().generation_id == 3


def test_a_group_in_its_first_generation_is_lost() -> None:
    """It was only remembered as born: its members are strangers."""
    context = Context()
    (client,) = assembled(Client(context))
    after = context.reloaded()
    assert after.group().state is State.EMPTY
    assert moved(client, after).sync({}).code is ErrorCode.UNKNOWN_MEMBER_ID


def test_handed_out_ids_are_lost() -> None:
    """The client gets UNKNOWN_MEMBER_ID and asks for another one."""
    context = Context()
    client = Client(context)
    client.member_id = client.ask().message.member_id
    assert moved(client, context.reloaded()).ask().code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_follower_that_joins_after_a_reload_rebalances() -> None:
    """Only the chosen protocol was stored, so what it offers looks new."""
    context = Context()
    clients = stable(*(Client(context, [("range", b""), ("sticky", b"")]) for _ in range(2)))
    after = context.reloaded()
    assert moved(clients[1], after).start().parked.parked
    assert moved(clients[0], after).heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_group_that_is_too_large_by_now_rebalances() -> None:
    """group.max.size may have changed: the last ones to join are turned away; the rest waits for the timeout."""
    context = Context()
    clients = stable(Client(context), Client(context))
    context.settings.values["group.max.size"] = 1
    after = context.reloaded()
    assert after.group().state is State.PREPARING_REBALANCE
    assert moved(clients[1], after).start().parked.parked
    assert moved(clients[0], after).ask().code is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert after.group().all_joined
    after.advance(60_000)
    assert clients[1].joined().generation_id == 3


def test_old_records_are_understood() -> None:
    """No rebalance timeout: the session's; no type: none; no timestamp: unknown; no protocol: nothing to offer."""
    member = GroupMember("m", "c", "/h", -1, 6000, b"", b"")
    context = Context(
        log=[
            Logged(GroupMetadata(G, "consumer", 3, "range", "m", -1, (member,))),
            Logged(GroupMetadata("e", "", 3, None, None, -1)),
            Logged(GroupMetadata("odd", "consumer", 3, None, "m", -1, (member,))),
        ]
    )
    assert context.group().members["m"].rebalance_timeout_ms == 6000
    assert (context.group("e").protocol_type, context.group("e").state_timestamp_ms) == (None, -1)
    assert context.group("odd").members["m"].protocols == ()


def test_the_subscriptions_of_a_loaded_group_are_known() -> None:
    """They decide what expires before the first rebalance."""
    context = Context()
    stable(Client(context, [("range", subscription("foo"))]))
    after = context.reloaded()
    assert after.group().subscriptions == frozenset({"foo"})


def test_parked_requests_are_answered_when_the_coordinator_moves() -> None:
    """Parked joins and syncs get NOT_COORDINATOR; a join's answer has its member id."""
    context = Context()
    leader, follower = stable(Client(context), Client(context))
    leader.start()
    _, syncing = assembled(Client(context, group_id="h"), Client(context, group_id="h"))
    waiting = syncing.sync()
    context.commit("foo", {0: 1}, group_id="simple")
    context.perform(context.machine.unloaded())
    assert leader.parked.code is waiting.code is ErrorCode.NOT_COORDINATOR
    assert leader.parked.message.member_id == leader.member_id
    assert not follower.parked.message.error_code


def remembered(context: Context) -> tuple[object, object, object]:
    """What a log must bring back: the last record of each group, the offsets, and what is pending."""
    groups: dict[str, GroupMetadata | None] = {}
    for record in context.records:
        if isinstance(record, GroupMetadata):
            groups[record.group_id] = record
        elif isinstance(record, GroupMetadataTombstone):
            groups.pop(record.group_id, None)
        elif isinstance(record, OffsetCommit):
            groups.setdefault(record.group_id, None)
    offsets = {group_id: context.machine.offsets.topics(group_id) for group_id in groups}
    return groups, offsets, {group_id: context.machine.offsets.pending(group_id) for group_id in groups}


def held(group: ClassicGroup) -> GroupMetadata:
    """A restored group as the record that restored it."""
    assignments = {member.member_id: member.assignment for member in group.members.values()}
    return group.record(assignments)


@pytest.mark.slow
def test_every_prefix_of_the_log_restores_what_held_then() -> None:
    """A long life of two groups, cut off after each record and marker."""
    chance = random.Random(7)
    context = Context({"group.initial.rebalance.delay.ms": 10})
    clients = [Client(context, group_id=group_id, session_ms=6000) for group_id in ("a", "b") for _ in range(3)]
    clients += [Client(context, group_id="a", instance_id="i1", session_ms=6000)]
    then: list[tuple[object, object, object]] = [remembered(context)]
    for _ in range(600):
        live(context, chance, chance.choice(clients))
        while len(then) <= len(context.log):
            then.append(remembered(context.reloaded(len(then))))
    assert len(context.log) > 100
    assert remembered(context) == then[-1]
    for entries, (groups, offsets, pending) in enumerate(then):
        after = context.reloaded(entries)
        assert remembered(after) == (groups, offsets, pending)
        assert isinstance(groups, dict)
        assert set(after.machine.groups) == set(groups)
        for group_id, record in groups.items():
            group = after.group(group_id)
            assert group.state in (State.STABLE, State.EMPTY)
            assert record is None or held(group) == record


def live(context: Context, chance: random.Random, client: Client) -> None:
    """One random step of a client, a transaction or the time."""
    group_id, topic = client.group_id, chance.choice(["foo", "bar"])
    match chance.randrange(9):
        case 0 | 1:
            client.start()
        case 2 | 3 if not client.parked.parked and client.parked.code is ErrorCode.NONE:
            client.joined()
            client.sync({client.member_id: b"%d" % client.generation})
        case 4:
            client.heartbeat()
            context.commit(topic, {0: chance.randrange(99)}, client.generation, client.member_id, group_id=group_id)
        case 5:
            context.leave(client.identity(), group_id=group_id)
            client.member_id = ""
        case 6:
            transaction = TransactionalAppend(chance.randrange(3), 0, "t")
            record = OffsetCommit(group_id, topic, 1, chance.randrange(99), commit_timestamp_ms=START_MS)
            context.log.append(Logged(record, transaction))
            context.machine.replay(record, len(context.log) - 1, transaction)
        case 7:
            context.log.append(Marker(chance.randrange(3), chance.random() < 0.5))
            marker = context.log[-1]
            assert isinstance(marker, Marker)
            context.machine.replay_marker(marker.producer_id, 0, marker.committed)
        case _:
            context.advance(chance.choice([1, 1000, 6000, 600_000 * 1100]))
