"""What counts as two owners of a partition, and as a commit of one that is none (KIP-848)."""

import asyncio
from collections.abc import Sequence
from contextlib import closing
from random import Random

import pytest

from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from simulator.clients.client import Lost, World
from simulator.clients.consumer_member import ConsumerMember, Subscription
from simulator.history import History, Place
from simulator.loop import VirtualLoop
from simulator.network import Network
from simulator.ownership import Ownership
from simulator.trace import Trace

A, B = frozenset({("t", 0)}), frozenset({("t", 1)})
LOST = None


def ownership() -> tuple[Ownership, list[str]]:
    """Of members with timeouts of 6 s, and the promises that it finds broken."""
    violations: list[str] = []
    return Ownership(violations.append, 6_000), violations


def test_a_partition_has_one_owner_in_each_epoch() -> None:
    """An instance that comes back with another member id is the same owner; another member is not."""
    group, broken = ownership()
    group.note_assignment("g", "instance", "m1", 5, A, 0, 1)
    group.ends("g", "instance", "m1")
    group.note_assignment("g", "instance", "m2", 5, A, 10_000, 10_001)
    assert broken == []
    group.note_assignment("g", "m3", "m3", 5, A, 30_000, 30_001)
    assert broken == ["g, epoch 5: t-0 belongs to instance and to m3"]


def test_a_partition_is_free_once_its_owner_confirms_it_or_has_been_silent() -> None:
    """Not before: that would be two readers at once."""
    group, broken = ownership()
    group.note_assignment("g", "m1", "m1", 5, A | B, 1_000, 1_001)
    group.note_assignment("g", "m1", "m1", 5, A, 2_000, 2_001)  # asked to give up t-1, which it still has
    group.note_assignment("g", "m2", "m2", 6, B, 3_000, 3_001)
    assert broken == ["g: t-1 was given to m2 while m1 held it, 1001 ms after its last heartbeat"]
    broken.clear()
    group.keeps("g", "m1", "m1", A)
    group.note_assignment("g", "m3", "m3", 7, B, 3_500, 9_100)
    group.note_assignment("g", "m4", "m4", 8, A, 8_001, 8_002)
    assert broken == []


def test_a_commit_needs_the_partition() -> None:
    """One that was sent before another member had it may be answered later."""
    group, broken = ownership()
    group.note_assignment("g", "m1", "m1", 5, A, 0, 1)
    group.ends("g", "m1", "m1")
    group.note_assignment("g", "m2", "m2", 6, A, 100, 101)
    group.commits("g", "m1", A, 90)
    group.commits("g", "m2", A, 200)
    assert broken == []
    group.commits("g", "m1", A, 150)
    assert broken == ["g: m1 committed t-0 at 150 ms, which m2 had since 101 ms"]


def test_the_epoch_of_a_member_never_goes_back() -> None:
    """Until it has left, or has heard that it is none."""
    group, broken = ownership()
    group.note_assignment("g", "m1", "m1", 5, A, 0, 1)
    group.note_assignment("g", "m1", "m1", 5, A, 10, 11)
    assert broken == []
    group.note_assignment("g", "m1", "m1", 4, A, 20, 21)
    assert broken == ["g: m1 has epoch 4, and had 5"]
    broken.clear()
    group.ends("g", "m1", "m1")
    group.note_assignment("g", "m1", "m1", 1, A, 30, 31)
    assert broken == []


class ScriptedMember(ConsumerMember):
    """A member whose heartbeats get the given assignments, or no response; its commits and fetches are left out."""

    clock_ms = arrives_ms = 0
    response: frozenset[Place] | None = LOST

    async def beat(self, sent_ms: int, arrives_ms: int, response: frozenset[Place] | None) -> None:
        """Send a heartbeat, and get a response with this assignment, or none."""
        self.clock_ms, self._heartbeat_at_us = sent_ms, 0
        self.arrives_ms, self.response = arrives_ms, response
        await self._keep()

    def elapsed_ms(self) -> int:
        """Return the time of the script."""
        return self.clock_ms

    async def _send_heartbeat(self) -> ConsumerGroupHeartbeatResponse:
        self.clock_ms = self.arrives_ms
        if self.response is LOST:
            raise Lost("timed out")
        return ConsumerGroupHeartbeatResponse(member_id=self.name, member_epoch=2)

    async def _assigned(self, _answer: ConsumerGroupHeartbeatResponse) -> frozenset[Place] | None:
        return self.response

    async def _reconcile(self) -> bool:
        self.owned = self._target
        return True


@pytest.mark.parametrize(
    ("beats", "free_ms"),
    [
        ([(0, 1, A | B), (1_000, 6_000, LOST), (6_100, 9_000, A)], 7_000),
        ([(0, 1, A | B), (1_000, 6_000, LOST), (6_100, 11_100, LOST), (11_200, 11_300, A)], 7_000),
        ([(0, 1, A | B), (1_000, 6_000, LOST), (6_100, 9_000, A | B)], 12_100),
        ([(0, 1, A | B), (6_100, 9_000, A)], 12_100),
        ([(0, 1, A | B), (1_000, 6_000, LOST), (6_100, 6_200, A), (6_300, 6_400, A)], 12_300),
        ([(0, 1, A | B), (1_000, 6_000, LOST), (6_100, 6_200, A | B), (7_000, 7_100, A)], 13_000),
    ],
    ids=[
        "a lost response may have revoked",
        "the first of two lost responses may have",
        "a lost response did not revoke",
        "none was lost",
        "the revocation is confirmed",
        "it was revoked later",
    ],
)
def test_the_rebalance_timeout_may_run_since_a_lost_response(
    beats: Sequence[tuple[int, int, frozenset[Place] | None]], free_ms: int
) -> None:
    """Only if the next response revokes partitions: then another member may get them that much earlier, not before."""
    for given_ms, promises in ((free_ms - 1, 1), (free_ms, 0)):
        with closing(VirtualLoop()) as loop:
            history = History(lambda: 0)
            world = World(Network(loop, Random(0), Trace()), history, {"t": 2}, 0)
            member = ScriptedMember(world, "m1", group="g", choices=[Subscription(["t"])], instance=None)
            world.elapsed_ms = member.elapsed_ms
            for each in beats:
                asyncio.run(member.beat(*each))
            history.ownership.note_assignment("g", "m2", "m2", 3, A, given_ms, given_ms)
        assert len(history.violations) == promises, history.violations
