"""What members of a share group were given and what they answered, record by record (KIP-932).

Times in ms are those of the brokers' timers: virtual milliseconds, and what their clock was pushed. ``at_us`` are
virtual microseconds. A request has two of them: when it was sent, and when its answer came.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Self

Place = tuple[str, int]
SLACK_US = 4_000_000
"""After a fault of a broker: how long partitions may still be led and loaded by another one."""


@dataclass(eq=False, slots=True)
class Lock:
    """A record that a member was given. ``open``: it has not answered. ``alive``: whether its connection is open.

    ``session_lost``: its session was ended by another connection, and the delivery may not count.
    """

    member: str
    count: int
    asked_us: int
    given_us: int
    lasts_until_ms: int
    alive: Callable[[], bool]
    open: bool = True
    session_lost: bool = False

    def __deepcopy__(self, _known: object) -> Self:
        """What is known of it in a state that is gone back to: then its connection is none any more."""
        return replace(self, alive=lambda: False)


@dataclass(eq=False, slots=True)
class Delivered:
    """Everything about one record. ``fate`` is what was acknowledged for sure: accepted or rejected, and since when."""

    value: bytes | None = None
    last: Lock | None = None
    seen: int = 0
    fate: str = ""
    fate_us: int = 0
    maybe: bool = False
    """An answer of a member had no answer: it may have been accepted or rejected."""


@dataclass
class Deliveries:
    """The records of all share groups. ``disturbed_us`` is when a fault of a broker was last under way."""

    violate: Callable[[str], None]
    now_us: Callable[[], int]
    limit: int = 5
    disturbed_us: Callable[[], int] = lambda: 0
    records: dict[tuple[str, Place], dict[int, Delivered]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(Delivered))
    )
    lost: dict[tuple[str, Place], int] = field(default_factory=lambda: defaultdict(int))
    """Group and partition -> fetches without an answer: each may have acquired any record once more."""
    asking: Counter[tuple[str, Place]] = field(default_factory=Counter)
    """Group and partition -> fetches that are under way."""
    answering: Counter[tuple[str, Place, int]] = field(default_factory=Counter)
    """Group, partition and offset -> acknowledgements that are under way."""

    def undisturbed(self, since_us: int) -> bool:
        """Whether no broker was harmed since then, and for a while before."""
        return self.disturbed_us() + SLACK_US < since_us

    def given(self, group: str, place: Place, offset: int, lock: Lock, now_ms: int) -> None:
        """A member was given a record: ``lock.count`` is how often it was delivered by now."""
        one, last = self.records[group, place][offset], self.records[group, place][offset].last
        what = f"{group}: {place[0]}-{place[1]} offset {offset} is given to {lock.member}"
        if one.fate and one.fate_us < lock.asked_us:
            self.violate(f"{what}, and was {one.fate}")
        one.seen += 1
        if not 1 <= lock.count <= min(self.limit, one.seen + self.lost[group, place]):
            self.violate(f"{what} with delivery count {lock.count}, after {one.seen - 1} deliveries")
        if last is not None and last.given_us <= lock.asked_us and self.undisturbed(last.asked_us):
            if lock.count < last.count + (not last.session_lost):
                self.violate(f"{what} with delivery count {lock.count}, which was {last.count} before")
            if last.open and last.alive() and now_ms < last.lasts_until_ms:
                self.violate(f"{what} while {last.member} has it locked")
        one.last = lock

    def read(self, group: str, place: Place, offset: int, value: bytes) -> None:
        """The value of a record that was given."""
        one = self.records[group, place][offset]
        if one.value is not None and one.value != value:
            self.violate(f"{group}: {place[0]}-{place[1]} offset {offset} was {one.value!r}, and now is {value!r}")
        one.value = value

    def answered(self, group: str, place: Place, offset: int, fate: str) -> None:
        """An acknowledgement was acknowledged: accepted, rejected, released, or a gap."""
        one = self.records[group, place][offset]
        if fate in ("accepted", "rejected", "gap") and not one.fate:
            one.fate, one.fate_us = fate, self.now_us()

    def doubt(self, group: str, place: Place, offsets: Iterable[int]) -> None:
        """An acknowledgement has no answer, or one that leaves open whether it counts."""
        for offset in offsets:
            self.records[group, place][offset].maybe = True

    @contextmanager
    def under_way(self, group: str, fetched: Iterable[Place], answers: Mapping[Place, Iterable[int]]) -> Iterator[None]:
        """Within the block, a member waits for what it fetches, and for the answer to its acknowledgements."""
        asking = [(group, place) for place in fetched]
        answering = [(group, place, offset) for place, own in answers.items() for offset in own]
        self.asking.update(asking)
        self.answering.update(answering)
        try:
            yield
        finally:
            self.asking.subtract(asking)
            self.answering.subtract(answering)

    def interrupt(self) -> None:
        """What is under way has no answer: it may have happened or not."""
        for key, count in self.asking.items():
            self.lost[key] += count
        for (group, place, offset), count in self.answering.items():
            self.records[group, place][offset].maybe |= count > 0
        self.asking.clear()
        self.answering.clear()

    def given_to(self, member: str) -> int:
        """How many records a member was the last one to be given."""
        return sum(
            one.last is not None and one.last.member == member for own in self.records.values() for one in own.values()
        )

    def check(
        self, group: str, place: Place, log: Sequence[tuple[int, bytes]], auditor: str, *, committed: bool
    ) -> None:
        """When all is over: ``log`` are the committed records, ``auditor`` a member that was given what was left.

        ``committed``: the group reads committed records only.
        """
        values, own = dict(log), self.records[group, place]
        for offset, one in sorted(own.items()):
            if one.value is not None and values.get(offset, one.value) != one.value:
                self.violate(
                    f"{group}: {place[0]}-{place[1]} offset {offset} was {one.value!r}, not {values[offset]!r}"
                )
            if one.value is not None and committed and offset not in values:
                self.violate(f"{group}: {place[0]}-{place[1]} offset {offset}, {one.value!r}, was never committed")
        for offset, value in log:
            one = own[offset]
            archived = one.seen + self.lost[group, place] >= self.limit
            left = one.last is not None and one.last.member == auditor
            if not left and not one.fate and not one.maybe and not archived:
                self.violate(
                    f"{group}: {place[0]}-{place[1]} offset {offset}, {value!r}, was neither accepted nor rejected, "
                    f"delivered {one.seen} times, and is not available"
                )
