"""Checks share groups (KIP-932): which records a member acquired and for how long, and what it could acknowledge."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

from pipeline.answers.calls import NONE, Body, Call, Fault, listed

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4  # AcknowledgeType
_CLOSES: Final = -1
_MOST_OFFSETS: Final = 100_000
"""Longer ranges are not checked offset by offset: one acknowledgement may name 2^63.

Arbitrary, more than clients acknowledge at a time.
"""
_RESETS: Final = frozenset({"AlterShareGroupOffsets", "DeleteShareGroupOffsets", "DeleteGroups"})
Place = tuple[str, str, int]
"""Group, topic id, partition."""


class _Acquired(NamedTuple):
    call: Call
    member_id: str
    first: int
    last: int
    deliveries: int


class _Acknowledged(NamedTuple):
    call: Call
    member_id: str
    first: int
    last: int
    types: list[int]
    error: str

    def type_of(self, offset: int) -> int:
        """Return the acknowledgement type of one record; 0 is a gap."""
        at = offset - self.first
        return self.types[at] if len(self.types) > at else self.types[0] if len(self.types) == 1 else RELEASE


@dataclass
class ShareGroups:
    """The share groups of one run and era."""

    _acquired: dict[Place, list[_Acquired]] = field(default_factory=lambda: defaultdict(list))
    _acknowledged: dict[Place, list[_Acknowledged]] = field(default_factory=lambda: defaultdict(list))
    _freed: dict[tuple[str, str], list[Call]] = field(default_factory=lambda: defaultdict(list))
    """By group and member: calls that end a session or a membership."""
    _resets: list[Call] = field(default_factory=list)
    _sessions: dict[tuple[str, str, int], tuple[int, set[tuple[str, int]]]] = field(default_factory=dict)
    """By group, member and connection: the next epoch, and the partitions."""
    _last_us: dict[int, int] = field(default_factory=dict)
    """By connection: time of its last request."""

    def note(self, call: Call) -> Iterator[Fault]:
        """Record a call, and yield the faults that earlier calls prove."""
        self._last_us[call.connection] = max(self._last_us.get(call.connection, 0), call.start_us)
        if call.api in _RESETS:
            self._resets.append(call)
        elif call.api == "ShareGroupHeartbeat" and call.request["member_epoch"] <= 0:
            self._freed[call.request["group_id"], call.request["member_id"]].append(call)
        elif call.api in {"ShareFetch", "ShareAcknowledge"}:
            if call.request["share_session_epoch"] <= 0:
                self._freed[call.request["group_id"], call.request["member_id"]].append(call)
            yield from self._session(call)
            yield from self._partitions(call)

    def _session(self, call: Call) -> Iterator[Fault]:
        """Check the epochs of a share session on one connection: 0, 1, 2 ...; -1 closes it."""
        request = call.request
        key = (request["group_id"], request["member_id"], call.connection)
        epoch, requested = request["share_session_epoch"], set(_places(request, "topics"))
        known = self._sessions.get(key)
        error = call.response.get("error_code")
        if error == NONE and known and epoch > 0 and epoch != known[0]:
            yield self._fault(call, f"session epoch {epoch} was accepted, expected {known[0]}")
        if error == "INVALID_SHARE_SESSION_EPOCH" and known and epoch == known[0]:
            yield self._fault(call, f"session epoch {epoch} was refused, though it is the next one")
        if error == NONE and epoch >= 0:
            before = set() if epoch == 0 or known is None else known[1]
            partitions = before | requested
            if call.api == "ShareFetch":
                for _, partition in sorted(set(_places(call.response, "responses")) - partitions):
                    if epoch == 0 or known:
                        yield self._fault(call, "a partition that is not in the session", partition=partition)
            forgotten = {
                (each["topic_id"], one)
                for each in listed(request, "forgotten_topics_data")
                for one in each["partitions"]
            }
            if epoch == 0 or known:
                self._sessions[key] = (epoch + 1, partitions - forgotten)
        elif error != "INVALID_SHARE_SESSION_EPOCH":
            self._sessions.pop(key, None)

    def _partitions(self, call: Call) -> Iterator[Fault]:
        request = call.request
        group_id, member_id = request["group_id"], request["member_id"]
        codes: dict[tuple[str, int], str] = {}
        for each in listed(call.response, "responses"):
            for part in listed(each, "partitions"):
                place = (each["topic_id"], part["partition_index"])
                code = part.get("acknowledge_error_code", part.get("error_code"))
                codes[place] = NONE if code in (0, NONE) else str(code)
                yield from self._acquire(call, (group_id, *place), member_id, part)
                for what in _beside(call, part):
                    yield self._fault(call, what, partition=place[1])
        for each in listed(request, "topics"):
            for part in listed(each, "partitions"):
                key = (each["topic_id"], part["partition_index"])
                error = (
                    codes.get(key, NONE if call.api == "ShareFetch" else "")
                    if call.response.get("error_code") == NONE
                    else ""
                )
                for batch in listed(part, "acknowledgement_batches"):
                    acks = _Acknowledged(
                        call, member_id, batch["first_offset"], batch["last_offset"], batch["acknowledge_types"], error
                    )
                    self._acknowledged[group_id, *key].append(acks)

    def _acquire(self, call: Call, place: Place, member_id: str, part: Body) -> Iterator[Fault]:
        """Check the acquired ranges of a partition: in order, disjoint, and covered by the records in the response."""
        runs = listed(part, "acquired_records")
        records = part.get("records") or {}
        end = -1
        for run in runs:
            first, last = run["first_offset"], run["last_offset"]
            what = None
            if first > last or first <= end:
                what = "acquired records out of order, or twice"
            elif run["delivery_count"] < 1:
                what = f"a delivery count of {run['delivery_count']}"
            elif not _covers(records, first, last):
                what = "acquired records that are not in the answer"
            if what:
                yield self._fault(call, what, partition=place[2], offset=first)
            end = max(end, last)
            self._acquired[place].append(_Acquired(call, member_id, first, last, run["delivery_count"]))

    def faults(self) -> Iterator[Fault]:
        """Yield the contradictions among all calls."""
        for place, acquired in self._acquired.items():
            by_offset: dict[int, list[_Acquired]] = defaultdict(list)
            for each in sorted(acquired, key=lambda one: one.call.end_us):
                if each.last - each.first < _MOST_OFFSETS:
                    for offset in range(each.first, each.last + 1):
                        by_offset[offset].append(each)
            acks: dict[int, list[_Acknowledged]] = defaultdict(list)
            for ack in self._acknowledged[place]:
                for offset in range(ack.first, min(ack.last, ack.first + _MOST_OFFSETS) + 1):
                    acks[offset].append(ack)
            seen: set[tuple[int, str]] = set()
            highest = max(each.last for each in acquired)
            for fault in self._of_partition(place, by_offset, acks, highest):
                if (fault.id, fault.what) not in seen:  # one fault for each range
                    seen.add((fault.id, fault.what))
                    yield fault

    def _of_partition(
        self, place: Place, by_offset: dict[int, list[_Acquired]], acks: dict[int, list[_Acknowledged]], highest: int
    ) -> Iterator[Fault]:
        for offset, acquired in by_offset.items():
            for before, after in pairwise(acquired):
                what = self._wrongly_again(before, after, offset, acks[offset])
                if what:
                    yield self._fault(after.call, what, partition=place[2], offset=offset)
        for offset, acks_of_it in acks.items():
            for each in acks_of_it:
                if each.error == NONE and offset > highest and not self._is_reset(each.call, each.call):
                    what = "an acknowledgement of records that were not acquired was accepted"
                    yield self._fault(each.call, what, partition=place[2], offset=offset)
            for one in by_offset.get(offset, ()):
                refused = self._refused(one, acks_of_it, by_offset[offset])
                if refused is not None:
                    what = "the holder's acknowledgement was refused"
                    yield self._fault(refused, what, partition=place[2], offset=offset)

    def _wrongly_again(self, before: _Acquired, after: _Acquired, offset: int, acks: list[_Acknowledged]) -> str | None:
        """Return why a record must not have been acquired again, or not with this delivery count."""
        if before.call.broker != after.call.broker or self._is_reset(before.call, after.call):
            return None
        own = [each for each in acks if each.member_id == before.member_id and each.call.end_us >= before.call.start_us]
        done = [each for each in own if each.error == NONE and each.call.end_us < after.call.start_us]
        if any(
            each.type_of(offset) in (ACCEPT, REJECT, 0) and each.call.start_us > before.call.end_us for each in done
        ):
            return "acquired after it was accepted or rejected"
        if not self._is_free(before, after, own, offset):
            return "acquired while another fetch held it"
        is_released = any(each.type_of(offset) == RELEASE for each in done) and not self._has_left(before, after.call)
        if not before.deliveries + is_released <= after.deliveries <= before.deliveries + 1:
            return f"a delivery count of {after.deliveries} after {before.deliveries}"
        return None

    def _is_free(self, before: _Acquired, after: _Acquired, own: list[_Acknowledged], offset: int) -> bool:
        """Return whether a lock may have ended in time; a closed connection ends the locks of its session."""
        lock_ms = before.call.response.get("acquisition_lock_timeout_ms") or 0
        return (
            any(each.type_of(offset) != RENEW and each.call.start_us <= after.call.end_us for each in own)
            or lock_ms <= 0
            or _ends_at_ms(after.call) >= before.call.at_ms + lock_ms
            or self._last_us.get(before.call.connection, 0) <= after.call.end_us
            or self._has_left(before, after.call)
        )

    def _has_left(self, before: _Acquired, until: Call) -> bool:
        ended = self._freed.get((before.call.request["group_id"], before.member_id), ())
        return any(
            each.end_us >= before.call.start_us and each.start_us <= until.end_us and each is not before.call
            for each in ended
        )

    def _refused(self, one: _Acquired, acks_of_it: list[_Acknowledged], acquired: list[_Acquired]) -> Call | None:
        """Return the holder's first acknowledgement of a record if it was refused without a reason."""
        own = [each for each in acks_of_it if each.member_id == one.member_id and each.call.start_us > one.call.end_us]
        first = min(own, key=lambda each: each.call.start_us, default=None)
        if first is None or first.error != "INVALID_RECORD_STATE":
            return None
        lock_ms = one.call.response.get("acquisition_lock_timeout_ms") or 0
        others = (each for each in acquired if each is not one and each.call.start_us < first.call.end_us)
        is_valid = (
            _ends_at_ms(first.call) < one.call.at_ms + lock_ms
            and (first.call.connection, first.call.broker) == (one.call.connection, one.call.broker)
            and not any(each.call.end_us > one.call.start_us for each in others)
            and not self._has_left(one, first.call)
            and not self._is_reset(one.call, first.call)
            and one.first <= first.first <= first.last <= one.last
        )
        return first.call if is_valid else None

    def _is_reset(self, before: Call, after: Call) -> bool:
        """Return whether an administrator may have reset the offsets in between."""
        return any(each.start_us <= after.end_us and each.end_us >= before.start_us for each in self._resets)

    def _fault(self, call: Call, what: str, *, partition: int | None = None, offset: int | None = None) -> Fault:
        request = call.request
        return Fault(
            call.id, "share-answer", what, partition=partition, offset=offset, group_id=request["group_id"],
            member_id=request["member_id"],
        )  # fmt: skip


def _covers(records: Body, first: int, last: int) -> bool:
    """Return whether the batches of a response cover a range; batches without a summary are assumed to."""
    if records.get("base_offset") is None:
        return False
    return records.get("last_offset") is None or bool(records["base_offset"] <= first <= last <= records["last_offset"])


def _beside(call: Call, part: Body) -> Iterator[str]:
    """Check acquired records: they come with records and with a lock timeout, and without an error."""
    runs, records = listed(part, "acquired_records"), part.get("records") or {}
    if records.get("batches") and (not runs or part["error_code"] != NONE):
        yield f"records without any that were acquired, {part['error_code']}"
    if runs and call.response.get("acquisition_lock_timeout_ms", 1) <= 0 and call.version > 0:
        yield "acquired records without a lock"


def _ends_at_ms(call: Call) -> int:
    """Return when a response was ready, by the cluster's clock."""
    return call.at_ms + (call.end_us - call.start_us) // 1000


def _places(body: Body, name: str) -> Iterator[tuple[str, int]]:
    for each in listed(body, name):
        for part in listed(each, "partitions"):
            yield each["topic_id"], part["partition_index"]
