"""Members of both protocols in one group (groups KIP848-39 to KIP848-44, G.3)."""

import struct

import pytest

from protocol.apis import ApiKey
from protocol.messages.sync_group import SyncGroupRequest
from tests.coordination.group.subscriptions import subscription
from tests.scenarios.core.asking import created
from tests.scenarios.groups import members as classic
from tests.scenarios.groups.consumers import INTERVAL_MS, Consumer, described, listing, member_of, outcome, settled
from tests.scenarios.groups.members import Member, commit, coordinated
from tests.server import Server, until
from tests.wire import Wire

PROTOCOL = "range"


@pytest.fixture
def wire(consumers: Server) -> Wire:
    """A connection to the coordinator, with the topic foo of three partitions."""
    connection = coordinated(consumers)
    created(connection, "foo", 3)
    consumers.advance(100)
    return connection


def assignment(*partitions: int) -> bytes:
    """ConsumerProtocolAssignment of foo."""
    head = struct.pack(">hih", 1, 1, 3) + b"foo"
    return head + struct.pack(f">i{len(partitions)}ii", len(partitions), *partitions, -1)


def partitions_of(raw: bytes) -> list[int]:
    """Of foo, in such bytes."""
    _, topics = struct.unpack_from(">hi", raw)
    if not topics:
        return []
    (count,) = struct.unpack_from(">i", raw, 11)
    return sorted(struct.unpack_from(f">{count}i", raw, 15))


class ClassicConsumer(Member):
    """A member of the classic protocol in a group that the coordinator assigns."""

    def joins(self, *owned: int) -> int:
        """JoinGroup with what it has: the generation."""
        self.metadata = subscription("foo")[:-4] + struct.pack(">i", 1 if owned else 0)
        if owned:
            self.metadata += struct.pack(">h", 3) + b"foo" + struct.pack(f">i{len(owned)}i", len(owned), *owned)
        self.start()
        self.joined()
        assert (self.last.leader, list(self.last.members), self.last.protocol_name) == ("", [], PROTOCOL)
        return self.generation

    def synced(self, generation: int | None = None) -> tuple[int, list[int]]:
        """SyncGroup: the code and the partitions."""
        epoch = self.generation if generation is None else generation
        request = SyncGroupRequest(self.group_id, epoch, self.member_id, [], None, "consumer", PROTOCOL)
        answer = self.wire.call(ApiKey.SYNC_GROUP, 5, request)
        return int(answer.error_code), partitions_of(bytes(answer.assignment)) if answer.assignment else []


def stable_alone(server: Server, member: ClassicConsumer) -> None:
    """The only member of a classic group, with all partitions of foo."""
    member.metadata = subscription("foo")
    classic.assembled(server, member)
    assert member.sync({member.member_id: assignment(0, 1, 2)}).error_code == 0


def test_KIP848_39_a_consumer_comes_to_a_classic_group(consumers: Server, wire: Wire) -> None:
    """The group becomes another; its old member is called back, gives up and keeps its share."""
    old = ClassicConsumer(wire, session_ms=20_000)
    stable_alone(consumers, old)
    generation = old.generation
    new = Consumer(coordinated(consumers), "new")
    assert outcome(new.join()) == (0, generation + 1, [])
    listed_group = listing(wire)
    assert listed_group is not None
    assert listed_group.group_type == "consumer"
    assert old.beat() == 27
    assert old.joins(0, 1, 2) == generation
    code, kept = old.synced()
    assert (code, len(kept)) == (0, 2)
    assert old.joins(*kept) == generation + 1
    assert old.synced() == (0, kept)
    settled(new)
    assert sorted([*kept, *new.partitions]) == [0, 1, 2]
    assert old.beat() == 0
    assert commit(wire, "foo", 5, old.generation, old.member_id) == 0
    assert commit(wire, "foo", 5, old.generation + 1, old.member_id) == 22


def test_KIP848_41_42_a_classic_member_comes_to_a_consumer_group(consumers: Server, wire: Wire) -> None:
    """It gets an id, then an answer at once; its generation is its epoch."""
    first = Consumer(wire)
    first.join()
    consumers.advance(INTERVAL_MS)
    late = ClassicConsumer(coordinated(consumers), session_ms=20_000)
    assert late.joins() == 3
    assert late.synced() == (0, [])
    assert (late.synced(2)[0], late.beat(2)) == (22, 22)
    first.keeps_up()
    first.keeps_up()
    assert late.beat() == 27
    assert late.joins() == 3
    code, mine = late.synced()
    assert (code, len(mine)) == (0, 1)
    consumers.advance(INTERVAL_MS)
    Consumer(coordinated(consumers), "m3").join()
    assert (late.beat(), late.synced()[0]) == (27, 27)


def test_KIP848_43_the_last_consumer_leaves(consumers: Server, wire: Wire) -> None:
    """The group is a classic one again, and all members join again."""
    first = Consumer(wire)
    first.join()
    consumers.advance(INTERVAL_MS)
    late = ClassicConsumer(coordinated(consumers), session_ms=20_000)
    late.joins()
    assert late.synced()[0] == 0
    first.leave()
    until(lambda: classic.described(wire).error_code == 0 or None, "a classic group")
    group = classic.described(wire)
    assert (group.protocol_type, [each.member_id for each in group.members]) == ("consumer", [late.member_id])
    assert late.beat() == 27
    late.start()
    assert late.joined().generation_id == 4
    assert late.leads


def test_KIP848_44_members_of_both(consumers: Server, wire: Wire) -> None:
    """Have different types since v1; a classic one can be removed by LeaveGroup."""
    first = Consumer(wire)
    first.join()
    late = ClassicConsumer(coordinated(consumers), session_ms=20_000)
    late.joins()
    group = described(wire)
    assert (member_of(group, "m1").member_type, member_of(group, late.member_id).member_type) == (1, 0)
    late.leave()
    assert [each.member_id for each in described(wire).members] == ["m1"]
