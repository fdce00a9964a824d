"""Deliveries to members of share groups and their acknowledgements, record by record (KIP-932).

Times in ms are those of the brokers' timers: virtual milliseconds plus the jumps of their clock. Times in us are
virtual microseconds. A request has two of them: when it was sent, and when its response arrived.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Self

Place = tuple[str, int]
SLACK_US = 4_000_000
"""Time after a fault of a broker in which partitions may still change their leader and be loaded.

Arbitrary, below a client's timeout.
"""


@dataclass(eq=False, slots=True)
class Lock:
    """Acquisition lock of a record that was delivered to a member.

    ``open``: the member has not acknowledged it. ``alive`` returns whether the member's session surely still exists.
    ``session_lost``: another connection ended the session, so the delivery may not count.
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
        """Copy the lock into a snapshot's history: after a restore, its connection is closed."""
        return replace(self, alive=lambda: False)


@dataclass(eq=False, slots=True)
class Delivered:
    """Deliveries of one record. ``fate``: the acknowledgement that surely counts, if there is one, at ``fate_us``."""

    value: bytes | None = None
    last: Lock | None = None
    seen: int = 0
    highest: int = 0
    """The highest delivery count."""
    fate: str = ""
    fate_us: int = 0
    maybe: bool = False
    """An acknowledgement had no response: the record may have been accepted or rejected.

    A later delivery does not rule it out: the leader may have undone what the share coordinator has written.
    """
    refused_by: int = 0
    """The share partition in a leader's memory that answered the acknowledgement with an error; 0: none did."""


@dataclass
class Deliveries:
    """The delivered records of all share groups. ``disturbed_us`` returns when a fault was last under way."""

    violate: Callable[[str], None]
    now_us: Callable[[], int]
    latest_us: int
    """Time after which a request that was given up has arrived, if it ever does."""
    limit: int = 5  # the default of group.share.delivery.count.limit
    disturbed_us: Callable[[], int] = lambda: 0
    excuse_of: Callable[[str, Place, int, int], str] = lambda *_: ""
    """Returns why Kafka, too, delivers a record once more to a fetch of that time; empty if it does not."""
    excused: list[str] = field(default_factory=list)
    """The broken promises that do not count, and why."""
    records: dict[tuple[str, Place], dict[int, Delivered]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(Delivered))
    )
    lost_us: dict[tuple[str, Place], list[int]] = field(default_factory=lambda: defaultdict(list))
    """Group and partition -> when fetches were given up: each may have acquired any record once more."""
    asking: Counter[tuple[str, Place]] = field(default_factory=Counter)
    """Group and partition -> fetches that are under way."""
    answering: Counter[tuple[str, Place, int]] = field(default_factory=Counter)
    """Group, partition and offset -> acknowledgements that are under way."""
    slow: bool = False
    """Whether responses may take so long that the locks of their records end before they arrive."""

    def undisturbed(self, since_us: int) -> bool:
        """Whether no fault was under way since then, and for :data:`SLACK_US` before."""
        return self.disturbed_us() + SLACK_US < since_us

    def note_delivery(self, group: str, place: Place, offset: int, lock: Lock, now_ms: int) -> None:
        """Check and note the delivery of a record to a member; ``lock.count`` is its delivery count."""
        one, last = self.records[group, place][offset], self.records[group, place][offset].last
        what = f"{group}: {place[0]}-{place[1]} offset {offset} is delivered to {lock.member}"
        if one.fate and one.fate_us < lock.asked_us:
            why = self.excuse_of(group, place, offset, lock.asked_us)
            if why:
                self.excused.append(f"{what}, and was {one.fate}, since {why}")
            else:
                self.violate(f"{what}, and was {one.fate}")
        one.seen += 1
        one.highest = max(one.highest, lock.count)
        disturbed = self.slow or not self.undisturbed(
            lock.asked_us
        )  # as by a clock that jumps while responses are late
        unseen = len(self.lost_us[group, place]) + (self.asking[group, place] if disturbed else 0)
        if not 1 <= lock.count <= min(self.limit, one.seen + unseen):
            self.violate(f"{what} with delivery count {lock.count}, after {one.seen - 1} deliveries")
        if last is not None and last.given_us <= lock.asked_us and self.undisturbed(last.asked_us):
            if lock.count < last.count + (not last.session_lost):
                self.violate(f"{what} with delivery count {lock.count}, which was {last.count} before")
            if last.open and last.alive() and now_ms < last.lasts_until_ms:
                self.violate(f"{what} while {last.member} has it locked")
        one.last, one.refused_by = lock, 0

    def read(self, group: str, place: Place, offset: int, value: bytes) -> None:
        """Check and note the value of a delivered record."""
        one = self.records[group, place][offset]
        if one.value is not None and one.value != value:
            self.violate(f"{group}: {place[0]}-{place[1]} offset {offset} was {one.value!r}, and now is {value!r}")
        one.value = value

    def answered(self, group: str, place: Place, offset: int, fate: str) -> None:
        """Note a successful acknowledgement: accepted, rejected, released, or a gap."""
        one = self.records[group, place][offset]
        if fate in ("accepted", "rejected", "gap") and not one.fate:
            one.fate, one.fate_us = fate, self.now_us()

    def doubt(self, group: str, place: Place, offsets: Iterable[int]) -> None:
        """Note an acknowledgement without a response, or with an error that leaves open whether it counts."""
        for offset in offsets:
            self.records[group, place][offset].maybe = True

    def lose(self, group: str, places: Iterable[Place]) -> None:
        """Note a fetch from these partitions without a response."""
        for place in places:
            self.lost_us[group, place].append(self.now_us())

    def _archived(self, group: str, place: Place, one: Delivered) -> bool:
        """Whether a record may have reached the delivery limit, by fetches without a response since its last delivery.

        They may also have been given up before it, and have arrived later.
        """
        since_us = 0 if one.last is None else one.last.asked_us - self.latest_us
        unseen = sum(given_up_us >= since_us for given_up_us in self.lost_us[group, place])
        return one.highest + unseen >= self.limit

    def refuse(self, group: str, place: Place, offsets: Iterable[int], life: int) -> None:
        """Note an acknowledgement that the share partition with this number answered with an error of its coordinator.

        That leader has undone it: as long as it lives, it delivers the record again, unless that was the last delivery.
        """
        for offset in offsets:
            self.records[group, place][offset].refused_by = life

    def check_refused(self, life_of: Callable[[str, Place], int]) -> None:
        """Check that leaders have delivered again what they refused to acknowledge, some time after the last fault."""
        for (group, place), own in sorted(self.records.items()):
            for offset, one in sorted(own.items()):
                archived = self._archived(group, place, one)
                if one.refused_by and not one.fate and not archived and one.refused_by == life_of(group, place):
                    self.violate(
                        f"{group}: {place[0]}-{place[1]} offset {offset}: its acknowledgement was refused by the "
                        f"leader, which has not delivered it again"
                    )

    @contextmanager
    def under_way(self, group: str, fetched: Iterable[Place], answers: Mapping[Place, Iterable[int]]) -> Iterator[None]:
        """Count a request as under way within the block: a member's fetches and acknowledgements."""
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
        """Note that all requests under way get no response: each may have had its effect or not."""
        for key, count in self.asking.items():
            self.lost_us[key] += [self.now_us()] * count
        for (group, place, offset), count in self.answering.items():
            self.records[group, place][offset].maybe |= count > 0
        self.asking.clear()
        self.answering.clear()

    def given_to(self, member: str) -> int:
        """Count the records that were last delivered to this member."""
        return sum(
            one.last is not None and one.last.member == member for own in self.records.values() for one in own.values()
        )

    def check(
        self, group: str, place: Place, log: Sequence[tuple[int, bytes]], auditor: str, *, committed: bool
    ) -> None:
        """Check a partition at the end of a run.

        ``log`` are the committed records, ``auditor`` is a member that fetched what was still available.
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
            archived = self._archived(group, place, one)
            left = one.last is not None and one.last.member == auditor
            if not left and not one.fate and not one.maybe and not archived:
                self.violate(
                    f"{group}: {place[0]}-{place[1]} offset {offset}, {value!r}, was neither accepted nor rejected, "
                    f"delivered {one.seen} times, and is not available"
                )
