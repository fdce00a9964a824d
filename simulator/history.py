"""History of the clients' requests and responses, which :mod:`simulator.checker` compares with the logs.

Promises that can be checked at each response are checked here, the others at the end of the run. Times are virtual
microseconds.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field

from simulator.deliveries import Deliveries
from simulator.ownership import Ownership

LAST_EPOCH = 32_766
"""The highest epoch that a producer may get; the one above it is reserved for fencing (KIP-360)."""
LATEST_US = 20_000_000
"""Time after which a request that was given up has arrived, if it ever does.

Longer than _MOST_LATE_US and a client's timeout together.
"""
PATIENCE_MS = 6_000
"""The session timeout of members of consumer and share groups, and the rebalance timeout."""
Place = tuple[str, int]
"""Topic and partition."""


@dataclass(eq=False, slots=True)
class Transaction:
    """One transaction of a producer. ``ending``: what EndTxn requested, once it was sent; None before.

    ``outcome`` is the producer's knowledge: ``open`` as long as it does not know the outcome. ``begun_ms`` is the time
    of the brokers' clock.
    """

    name: str
    instance: str
    number: int
    ending: bool | None = None
    outcome: str = "open"
    offsets: dict[tuple[str, Place], int] = field(default_factory=dict)
    tried_offsets: dict[tuple[str, Place], int] = field(default_factory=dict)
    producer_id: int = -1
    epoch: int = -1
    begun_ms: int = 0

    def __str__(self) -> str:
        return f"transaction {self.number} of {self.instance}"


@dataclass(eq=False, slots=True)
class Sent:
    """A record that a producer sent. ``fate``: ``unknown`` until it is ``acked`` (at ``offset``) or ``refused``."""

    value: bytes
    place: Place
    producer: str
    order: int
    transaction: Transaction | None
    fate: str = "unknown"
    offset: int = -1


@dataclass(frozen=True, slots=True)
class ObtainedEpoch:
    """Producer id and epoch that a transactional id got, and the instance of the client that got them."""

    producer_id: int
    epoch: int
    instance: str
    at_us: int


@dataclass
class History:
    """Everything that the clients of a run have observed."""

    now_us: Callable[[], int]
    violations: list[str] = field(default_factory=list)
    concerned: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Broken promise -> the transactions that it is about; empty for a promise about something else."""
    highest_epoch: Callable[[], int] = lambda: LAST_EPOCH
    """Returns the highest epoch that a producer may get now."""
    records: dict[bytes, Sent] = field(default_factory=dict)
    transactions: list[Transaction] = field(default_factory=list)
    epochs: dict[str, list[ObtainedEpoch]] = field(default_factory=lambda: defaultdict(list))
    owners_of_ids: dict[int, str] = field(default_factory=dict)
    seen: dict[str, dict[Place, list[tuple[int, bytes]]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )
    """Reader of committed records -> partition -> offset and value, in the order in which it saw them."""
    committed: dict[tuple[str, Place], int] = field(default_factory=dict)
    """Group and partition -> the highest offset whose commit was acknowledged."""
    tried: dict[tuple[str, Place], set[int]] = field(default_factory=lambda: defaultdict(set))
    """Group and partition -> all offsets that a member tried to commit."""
    doubtful: dict[tuple[str, Place], set[int]] = field(default_factory=lambda: defaultdict(set))
    """Group and partition -> offsets of commits without a response: they may take effect after later ones."""
    assigned: dict[tuple[str, int], dict[str, frozenset[Place]]] = field(default_factory=lambda: defaultdict(dict))
    decided: dict[tuple[str, int], list[dict[str, frozenset[Place]]]] = field(default_factory=lambda: defaultdict(list))
    """Group and generation -> assignments by its leader: several if a coordinator ended before it had written one."""
    generations: dict[str, int] = field(default_factory=dict)
    progress: Counter[str] = field(default_factory=Counter)
    """Client -> how often its main operation succeeded."""
    asking_ids: Counter[str] = field(default_factory=Counter)
    """Transactional id -> InitProducerId requests that are under way."""
    doubtful_ids: dict[str, int] = field(default_factory=dict)
    """Transactional id -> when the last InitProducerId request without a response was given up."""
    ownership: Ownership = field(init=False)
    deliveries: Deliveries = field(init=False)

    def __post_init__(self) -> None:
        self.ownership = Ownership(self.violate, PATIENCE_MS)
        self.deliveries = Deliveries(self.violate, self.now_us, LATEST_US)

    def violate(self, promise: str, *transactions: Transaction | None) -> None:
        """Add a broken promise, and the transactions that it is about."""
        self.violations.append(promise)
        self.concerned[promise].update(str(each) for each in transactions if each is not None)

    def kept(self) -> "History":
        """Return a copy of the history for a snapshot. All copies share one list of broken promises."""
        kept = deepcopy(self, {id(each): each for each in (self.violations, self.concerned, self.deliveries.excused)})
        kept.deliveries.interrupt()
        for name in +kept.asking_ids:
            kept.doubt_id(name)
        kept.asking_ids.clear()
        return kept

    def forgotten(self) -> "History":
        """Return an empty history after a reset, with the same list of broken promises."""
        fresh = History(self.now_us, self.violations, self.concerned, self.highest_epoch)
        fresh.deliveries.disturbed_us, fresh.deliveries.slow = self.deliveries.disturbed_us, self.deliveries.slow
        fresh.deliveries.excuse_of, fresh.deliveries.excused = self.deliveries.excuse_of, self.deliveries.excused
        return fresh

    # --- producers ---------------------------------------------------------------------------------------------------

    def note_producer_epoch(self, name: str, instance: str, producer_id: int, epoch: int, began_us: int) -> None:
        """Check and note an id and epoch from InitProducerId or EndTxn; ``began_us`` is when the request was sent."""
        owner = self.owners_of_ids.setdefault(producer_id, name)
        if owner != name:
            self.violate(f"producer id {producer_id} was given to {owner} and to {name}")
        if epoch > self.highest_epoch():
            self.violate(f"{name}: epoch {epoch} of {producer_id} was given to {instance}")
        for each in self.epochs[name]:
            same = (each.producer_id, each.epoch) == (producer_id, epoch)
            if same and each.instance != instance:
                self.violate(f"{name}: epoch {epoch} of {producer_id} was given to {each.instance} and to {instance}")
            older = each.producer_id == producer_id and epoch < each.epoch
            if older and each.at_us < began_us:
                self.violate(f"{name}: epoch {epoch} of {producer_id} was given after epoch {each.epoch}")
        # In the order of epochs: a fenced instance may get its response after the instance that fenced it.
        known, at = self.epochs[name], len(self.epochs[name])
        while at and self._precedes(producer_id, epoch, began_us, known[:at]):
            at -= 1
        known.insert(at, ObtainedEpoch(producer_id, epoch, instance, self.now_us()))

    @staticmethod
    def _precedes(producer_id: int, epoch: int, began_us: int, known: Sequence[ObtainedEpoch]) -> bool:
        """Return whether an epoch was given before the last known one, of the same producer id or of a later one.

        A transactional id never gets back a producer id that it had before another one. So if both were requested at
        the same time, the older id was given first. Requested after the response with the other id, it is a mistake.
        """
        last = known[-1]
        if last.producer_id == producer_id:
            return last.epoch > epoch
        return last.at_us >= began_us and any(each.producer_id == producer_id for each in known)

    def acted(self, name: str, instance: str, began_us: int, what: str) -> None:
        """Check a successful request of a transactional producer: it must not have been fenced before the request."""
        for holder in reversed(self.epochs[name]):
            if holder.instance == instance:
                return
            if holder.at_us < began_us:
                self.violate(f"{what} of {instance} succeeded though {holder.instance} had fenced it before")
                return

    def ended(self, instance: str, transactional_id: str, why: str, *, calm: bool) -> None:
        """Check why a transactional producer ended: without faults, only another instance may fence it."""
        newest = self.epochs[transactional_id][-1:]
        if calm and newest and newest[0].instance == instance:
            self.violate(f"{instance} was refused although no fault is under way: {why}")

    @contextmanager
    def initializing(self, name: str) -> Iterator[None]:
        """Count an InitProducerId request as under way within the block."""
        self.asking_ids[name] += 1
        try:
            yield
        except BaseException:  # its client was killed meanwhile
            self.doubt_id(name)
            raise
        finally:
            self.asking_ids[name] -= 1

    def doubt_id(self, name: str) -> None:
        """Note an InitProducerId request without a response: it may arrive later."""
        self.doubtful_ids[name] = self.now_us()

    def unmapped(self, name: str, instance: str, producer_id: int, epoch: int) -> None:
        """Check the refusal of a producer id that a coordinator has assigned, which neither expired nor timed out.

        Then only another instance may have got another producer id for the transactional id.
        """
        newest = self.epochs[name][-1]
        own = (newest.instance, newest.producer_id, newest.epoch) == (instance, producer_id, epoch)
        doubtful = self.asking_ids[name] > 0 or self.doubtful_ids.get(name, -LATEST_US) + LATEST_US > newest.at_us
        if own and not doubtful:
            self.violate(f"{instance}: {name} has another producer id than {producer_id}, which it was given")

    # --- groups ------------------------------------------------------------------------------------------------------

    def synced(self, group: str, generation: int, member: str, places: frozenset[Place]) -> None:
        """Check and note the partitions that a member got in a generation."""
        others = self.assigned[group, generation]
        for other, theirs in others.items():
            if other != member and theirs & places:
                twice = ", ".join(f"{topic}-{index}" for topic, index in sorted(theirs & places))
                self.violate(f"{group}, generation {generation}: {twice} belongs to {other} and to {member}")
        decisions = [each.get(member, frozenset()) for each in self.decided[group, generation]]
        if decisions and places not in decisions:
            self.violate(f"{group}, generation {generation}: {member} was not given what its leader decided")
        known = others.setdefault(member, places)
        if known != places:
            self.violate(f"{group}, generation {generation}: {member} was given two assignments")
        self.generations[group] = max(self.generations.get(group, -1), generation)

    def offsets_fetched(self, group: str, committed: Mapping[Place, int], floor: Mapping[Place, int]) -> None:
        """Check committed offsets that a member got; ``floor`` are those acknowledged before its request."""
        for place, offset in committed.items():
            lowest = floor.get(place, -1)
            if offset < lowest and offset not in self.doubtful[group, place]:
                key = group, place
                by = (each for each in self.transactions if each.tried_offsets.get(key) == lowest)
                self.violate(f"{group}: the offset of {place[0]}-{place[1]} went back from {lowest} to {offset}", *by)
            if offset >= 0 and offset not in self.tried[group, place]:
                self.violate(f"{group}: offset {offset} of {place[0]}-{place[1]} was committed by no member")

    def floor(self, group: str) -> dict[Place, int]:
        """Return the highest offsets of a group whose commits are acknowledged by now."""
        return {place: offset for (name, place), offset in self.committed.items() if name == group}

    def note_doubtful(self, group: str, offsets: Mapping[Place, int]) -> None:
        """Note the offsets of a commit without a response."""
        for place, offset in offsets.items():
            self.doubtful[group, place].add(offset)

    def note_committed(self, offsets: Mapping[tuple[str, Place], int]) -> None:
        """Note offsets whose commit was acknowledged."""
        for key, offset in offsets.items():
            self.committed[key] = max(self.committed.get(key, -1), offset)

    # --- readers -----------------------------------------------------------------------------------------------------

    def saw(self, reader: str, place: Place, records: Sequence[tuple[int, bytes]]) -> None:
        """Check and note the records that a reader of committed records got."""
        for offset, value in records:
            sent = self.records.get(value)
            if sent is None:
                self.violate(f"{reader} read {value!r}, which no client sent, at {place[0]}-{place[1]} offset {offset}")
            elif sent.transaction is not None and sent.transaction.outcome == "aborted":
                promise = f"{reader} read {value!r} of the aborted {sent.transaction} as committed"
                self.violate(promise, sent.transaction)
        self.seen[reader][place] += records
