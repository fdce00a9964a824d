"""What counts as a wrong delivery of a record to a member of a share group (KIP-932)."""

import pytest

from simulator.clients import share_member
from simulator.clients.share_member import ShareMember
from simulator.clients.share_sessions import Answers, Session
from simulator.deliveries import SLACK_US, Deliveries, Lock
from simulator.history import LATEST_US, Place

PLACE = ("t", 0)


class World:
    """Deliveries of a group with their clock, 10 s after the last fault of a broker."""

    def __init__(self) -> None:
        self.broken: list[str] = []
        self.now_us = 10_000_000
        self.deliveries = Deliveries(self.broken.append, lambda: self.now_us, LATEST_US)

    def give(self, member: str, count: int, *, lasts_ms: int = 5_000) -> Lock:
        """A fetch that is sent now, and answered a millisecond later."""
        asked_us, self.now_us = self.now_us, self.now_us + 1_000
        lock = Lock(member, count, asked_us, self.now_us, self.now_us // 1000 + lasts_ms, lambda: True)
        self.deliveries.note_delivery("g", PLACE, 0, lock, self.now_us // 1000)
        self.now_us += 1_000
        return lock


@pytest.mark.parametrize("fate", ["accepted", "rejected", "gap", "released"])
def test_what_is_done_is_never_given_again(fate: str) -> None:
    """Accepted and archived records are not delivered again; released ones are."""
    world = World()
    world.give("m1", 1).open = False
    world.deliveries.answered("g", PLACE, 0, fate)
    world.now_us += 1_000
    world.give("m2", 2)
    assert world.broken == ([] if fate == "released" else [f"g: t-0 offset 0 is delivered to m2, and was {fate}"])


def test_a_lock_holds_until_its_end() -> None:
    """Or until the member has answered, or has lost its connection."""
    world = World()
    lock = world.give("m1", 1)
    world.give("m2", 2)
    assert world.broken == ["g: t-0 offset 0 is delivered to m2 while m1 has it locked"]
    world = World()
    lock = world.give("m1", 1)
    lock.open = False
    world.give("m2", 2, lasts_ms=0)
    world.give("m3", 3)
    assert world.broken == []


def test_delivery_counts_grow() -> None:
    """Not where a broker was harmed meanwhile, whose memory they were in; but never beyond what was delivered."""
    world = World()
    world.give("m1", 1).open = False
    world.give("m2", 1).open = False
    assert world.broken == ["g: t-0 offset 0 is delivered to m2 with delivery count 1, which was 1 before"]
    world.broken.clear()
    world.deliveries.disturbed_us = lambda: world.now_us - SLACK_US // 2
    world.give("m3", 1).open = False
    assert world.broken == []
    world.give("m4", 5)
    assert world.broken == ["g: t-0 offset 0 is delivered to m4 with delivery count 5, after 3 deliveries"]


def test_no_record_is_lost() -> None:
    """In the end each one was accepted or rejected, may have been, was given up on, or is given to the last member."""
    world, log = World(), [(0, b"a"), (1, b"b"), (2, b"c")]
    world.give("auditor", 1)
    world.deliveries.doubt("g", PLACE, [1])
    world.deliveries.check("g", PLACE, log, "auditor", committed=True)
    assert world.broken == [
        "g: t-0 offset 2, b'c', was neither accepted nor rejected, delivered 0 times, and is not available"
    ]


@pytest.mark.parametrize("life", [7, 8])
def test_a_refused_acknowledgement_is_followed_by_a_delivery_while_the_leader_lives(life: int) -> None:
    """The leader has undone it; another one may have read it from the share coordinator, which had written it."""
    world = World()
    world.give("m1", 1).open = False
    world.deliveries.doubt("g", PLACE, [0])
    world.deliveries.refuse("g", PLACE, [0], 7)
    world.deliveries.check_refused(lambda _group, _place: life)
    refused = "g: t-0 offset 0: its acknowledgement was refused by the leader, which has not delivered it again"
    assert world.broken == ([refused] if life == 7 else [])
    world.broken.clear()
    world.now_us += 10_000_000
    world.give("m2", 2)
    world.deliveries.check_refused(lambda _group, _place: life)
    assert world.broken == []


@pytest.mark.parametrize("why", ["slow", "disturbed", ""])
def test_a_lock_may_end_before_its_response_arrives(why: str) -> None:
    """If acknowledgements in the same request wait for so long, or the clock jumps: the next delivery is the second."""
    world = World()
    world.deliveries.slow = why == "slow"
    if why == "disturbed":
        world.deliveries.disturbed_us = lambda: world.now_us
    with world.deliveries.under_way("g", [PLACE], {}):
        world.give("m2", 2).open = False
        world.give("m3", 5)
    assert [each.partition(",")[0] for each in world.broken] == [
        f"g: t-0 offset 0 is delivered to {member} with delivery count {count}"
        for member, count in [("m2", 2), ("m3", 5)][bool(why) :]
    ]


LOST = "g: t-0 offset 0, b'a', was neither accepted nor rejected, delivered 2 times, and is not available"


def lost_at_the_end(world: World) -> list[str]:
    """What is broken if the record is in the log, and the auditor does not get it."""
    world.deliveries.check("g", PLACE, [(0, b"a")], "auditor", committed=True)
    return world.broken


@pytest.mark.parametrize("before", [False, True])
def test_fetches_without_a_response_excuse_only_what_was_delivered_before(before: bool) -> None:
    """Four of them may have brought a record to its limit, but not one that is delivered with a low count later."""
    world = World()
    world.give("m1", 1).open = False
    if before:
        for _ in range(4):
            world.deliveries.lose("g", [PLACE])
    world.now_us += LATEST_US + 1_000_000
    world.give("m2", 2).open = False
    if not before:
        for _ in range(4):
            world.deliveries.lose("g", [PLACE])
    assert lost_at_the_end(world) == ([LOST] if before else [])


def test_what_is_excused_for_one_record_is_not_for_its_neighbour() -> None:
    """Doubt, and a leader's refusal, are those of one record; lost fetches are those of one partition."""
    world, log = World(), [(0, b"a"), (1, b"b")]
    world.deliveries.doubt("g", PLACE, [1])
    for _ in range(5):
        world.deliveries.lose("g", [("t", 1)])
    world.deliveries.check("g", PLACE, log, "auditor", committed=True)
    assert world.broken == [
        "g: t-0 offset 0, b'a', was neither accepted nor rejected, delivered 0 times, and is not available"
    ]


@pytest.mark.parametrize("excuse", ["doubt", "lost", "slow", "disturbed", "session lost", "refused", "interrupt"])
def test_no_excuse_lets_an_accepted_record_be_delivered_again(excuse: str) -> None:
    """No excuse covers a second delivery of an accepted record, nor one beyond the limit."""
    world = World()
    deliveries = world.deliveries
    lock = world.give("m1", 1)
    lock.open = False
    deliveries.answered("g", PLACE, 0, "accepted")
    match excuse:
        case "doubt":
            deliveries.doubt("g", PLACE, [0])
        case "lost":
            deliveries.lose("g", [PLACE])
        case "slow":
            deliveries.slow = True
        case "disturbed":
            deliveries.disturbed_us = lambda: world.now_us
        case "session lost":
            lock.session_lost = True
        case "refused":
            deliveries.refuse("g", PLACE, [0], 7)
        case "interrupt":
            deliveries.interrupt()
    world.now_us += 1_000
    world.give("m2", 2)
    world.give("m3", 6)
    assert world.broken[0] == "g: t-0 offset 0 is delivered to m2, and was accepted"
    assert any(each.startswith("g: t-0 offset 0 is delivered to m3 with delivery count 6") for each in world.broken)


@pytest.mark.parametrize("session_lost", [False, True])
def test_a_delivery_to_a_session_that_was_lost_may_not_count(session_lost: bool) -> None:
    """The count then stays as it was, but does not go back."""
    world = World()
    for count in (1, 2):
        world.give("m1", count).open = False
    last = world.deliveries.records["g", PLACE][0].last
    assert last is not None
    last.session_lost = session_lost
    world.give("m2", 2).open = False
    assert bool(world.broken) is not session_lost
    world.broken.clear()
    world.give("m3", 1)
    assert world.broken == ["g: t-0 offset 0 is delivered to m3 with delivery count 1, which was 2 before"]


async def test_a_share_member_fetches_from_the_leaders_that_it_read_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Metadata that it reads for one partition names another leader for one whose leader it knew."""
    fetched: dict[int, set[Place]] = {}

    class Sessions:
        """A session that notes what is fetched."""

        def __init__(self, _client: object, _group: str, broker: int, _version: int) -> None:
            self.broker, self.epoch, self.known = broker, 0, frozenset[Place]()
            self.locks: dict[Place, object] = {}

        async def fetch(self, places: set[Place], *_: object, **_options: object) -> bool:
            fetched[self.broker] = places
            return True

    class Member(ShareMember):
        """It knows the leader of the first partition by older metadata."""

        def __init__(self) -> None:
            self.assigned, self.sessions, self.group = frozenset({("b", 0), ("b", 1)}), {}, "g"
            self._version, self._most, self._limited = 1, 1, False
            self.leaders = {("b", 0): 1}

        async def leader(self, place: Place) -> int:
            if place not in self.leaders:
                self.leaders = {("b", 0): 3, ("b", 1): 2}
            return self.leaders[place]

        def _decide(self, _session: Session) -> Answers:
            return {}

    monkeypatch.setattr(share_member, "Session", Sessions)
    await Member().consume()
    assert fetched == {2: {("b", 1)}, 3: {("b", 0)}}
