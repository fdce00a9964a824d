"""Offsets and groups that grow old (groups B.3)."""

from broker.coordination.group.offsets.expiry import EXPIRY_TIMER
from broker.coordination.outcome import TransactionalAppend
from protocol.errors import ErrorCode
from protocol.log_records.group import GroupMetadata, GroupMetadataTombstone, OffsetCommit, OffsetCommitTombstone
from tests.coordination.group.harness import START_MS, Client, Context, G, Logged, Marker, stable
from tests.coordination.group.subscriptions import subscription

CHECK_MS, RETENTION_MS = 1000, 60_000
SHORT = {"offsets.retention.check.interval.ms": CHECK_MS, "offsets.retention.minutes": 1}
LONG_SESSION_MS = 10_000_000


def commit(context: Context, client: Client, *topics: str) -> None:
    """Commits of a member."""
    for topic in topics:
        context.commit(topic, {0: 5}, client.generation, client.member_id)


def test_a_simple_groups_offsets_age_from_their_commit() -> None:
    """Each on its own; with the last one the group goes, in the same pass."""
    context = Context(dict(SHORT))
    context.commit("foo", {0: 5})
    context.advance(CHECK_MS)
    context.commit("foo", {1: 6})
    context.advance(RETENTION_MS - CHECK_MS - 1)
    assert (context.offset("foo", 0), context.offset("foo", 1)) == (5, 6)
    context.advance(1)
    assert (context.offset("foo", 0), context.offset("foo", 1)) == (-1, 6)
    context.advance(CHECK_MS)
    assert context.records[-3:] == [
        OffsetCommitTombstone(G, "foo", 0),
        OffsetCommitTombstone(G, "foo", 1),
        GroupMetadataTombstone(G),
    ]


def test_an_empty_groups_offsets_age_from_its_last_member() -> None:
    """Offsets of an Empty group age from the time when its last member left, not from their commit."""
    context = Context(dict(SHORT))
    (client,) = stable(Client(context, session_ms=LONG_SESSION_MS))
    commit(context, client, "foo")
    context.advance(2 * RETENTION_MS)
    assert context.offset("foo") == 5
    context.leave(client.identity())
    context.advance(RETENTION_MS - 1)
    assert context.offset("foo") == 5
    context.advance(1)
    assert context.offset("foo") == -1
    assert G not in context.machine.groups


def test_an_old_empty_group_ages_from_the_commits() -> None:
    """A record without a timestamp of its state."""
    log: list[Logged | Marker] = [
        Logged(GroupMetadata(G, "consumer", 3, None, None, -1)),
        Logged(OffsetCommit(G, "foo", 0, 5, commit_timestamp_ms=START_MS - RETENTION_MS + CHECK_MS)),
        Logged(OffsetCommit(G, "foo", 1, 5, commit_timestamp_ms=START_MS)),
    ]
    context = Context(dict(SHORT), log)
    context.advance(CHECK_MS)
    assert (context.offset("foo", 0), context.offset("foo", 1)) == (-1, 5)


def test_OFF_21_subscribed_topics_keep_their_offsets() -> None:
    """Of a Stable "consumer" group: the rest ages from its commit."""
    context = Context(dict(SHORT))
    (client,) = stable(Client(context, [("range", subscription("foo"))], session_ms=LONG_SESSION_MS))
    commit(context, client, "foo", "bar")
    context.advance(RETENTION_MS)
    assert (context.offset("foo"), context.offset("bar")) == (5, -1)
    assert client.heartbeat() is ErrorCode.NONE


def test_OFF_22_other_types_expire_nothing_while_they_have_members() -> None:
    """A Stable group of another protocol type ("connect") keeps its offsets."""
    context = Context(dict(SHORT))
    (client,) = stable(Client(context, protocol_type="connect", session_ms=LONG_SESSION_MS))
    commit(context, client, "foo")
    context.advance(10 * RETENTION_MS)
    assert context.offset("foo") == 5


def test_unreadable_subscriptions_expire_nothing() -> None:
    """As long as the group has members (groups B.3.4)."""
    context = Context(dict(SHORT))
    (client,) = stable(Client(context, session_ms=LONG_SESSION_MS))
    commit(context, client, "foo")
    context.advance(10 * RETENTION_MS)
    assert context.offset("foo") == 5


def test_a_rebalancing_group_expires_nothing() -> None:
    """Offsets expire in Stable and Empty groups only, not during a rebalance."""
    context = Context(dict(SHORT))
    first, _ = stable(
        *(
            Client(context, [("range", subscription("foo"))], session_ms=LONG_SESSION_MS, rebalance_ms=LONG_SESSION_MS)
            for _ in range(2)
        )
    )
    commit(context, first, "bar")
    first.start()
    context.advance(10 * RETENTION_MS)
    assert context.offset("bar") == 5


def test_pending_offsets_hold_back_what_they_would_replace() -> None:
    """The partition and the group stay until the marker has come (groups B.3.1, B.3.2)."""
    context = Context(dict(SHORT))
    context.commit("foo", {0: 5, 1: 6})
    transaction = TransactionalAppend(7, 0, "t")
    pending = OffsetCommit(G, "foo", 0, 9, commit_timestamp_ms=START_MS)
    context.log.append(Logged(pending, transaction))
    context.machine.replay(pending, len(context.log) - 1, transaction)
    context.advance(RETENTION_MS)
    assert (context.offset("foo", 0), context.offset("foo", 1)) == (5, -1)
    context.marker(7, committed=False)
    context.advance(CHECK_MS)
    assert context.offset("foo", 0) == -1
    assert G not in context.machine.groups


def test_a_group_with_nothing_but_pending_offsets_stays() -> None:
    """A group whose only offsets are pending stays while their transaction is open."""
    context = Context(dict(SHORT))
    transaction = TransactionalAppend(7, 0, "t")
    pending = OffsetCommit(G, "foo", 0, 9, commit_timestamp_ms=START_MS)
    context.machine.replay(pending, 0, transaction)
    context.advance(10 * RETENTION_MS)
    assert G in context.machine.groups


def test_a_check_that_cannot_be_remembered_comes_again() -> None:
    """Nothing is forgotten, and the next one is armed."""
    context = Context(dict(SHORT))
    context.commit("foo", {0: 5})
    context.now_ms += RETENTION_MS
    context.refuse_append = ErrorCode.NOT_ENOUGH_REPLICAS
    context.perform(context.machine.expire(context.now_ms))
    assert context.offset("foo") == 5
    assert context.due_in("offset-expiry") == CHECK_MS
    context.perform(context.machine.expire(context.now_ms))
    assert context.offset("foo") == -1


def test_a_check_is_quiet_until_the_first_offset_expires() -> None:
    """Of a simple group from its commits, of members not at all, of an Empty group from its last member."""
    context = Context(dict(SHORT))
    rhythm = context.timers[EXPIRY_TIMER].rhythm
    assert rhythm is not None
    assert (rhythm.interval_ms, rhythm.quiet_until_ms()) == (CHECK_MS, None)
    context.commit("foo", {0: 5})
    context.advance(CHECK_MS)
    context.commit("foo", {1: 5})
    assert rhythm.quiet_until_ms() == START_MS + RETENTION_MS
    context.advance(RETENTION_MS - CHECK_MS)
    assert rhythm.quiet_until_ms() == START_MS + CHECK_MS + RETENTION_MS


def test_a_check_is_quiet_while_there_are_members() -> None:
    """Their offsets do not age; from the last one's leave on they do."""
    context = Context(dict(SHORT))
    (client,) = stable(Client(context, session_ms=LONG_SESSION_MS))
    commit(context, client, "foo")
    rhythm = context.timers[EXPIRY_TIMER].rhythm
    assert rhythm is not None
    assert rhythm.quiet_until_ms() is None
    context.leave(client.identity())
    assert rhythm.quiet_until_ms() == context.now_ms + RETENTION_MS
