"""Reconstructs the logs of partitions from a journal: their start offsets, and what failed at which offset.

A producer's batch is identified by its offset, not by the number of its request: how records are batched depends on
time. A refused batch gets the offset of the next appended one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from understudy.replay.verdict import AFTER_APPEND, Verdict

Sequence = tuple[int, int, int]
"""Producer id, epoch and base sequence of a batch."""
_NO_PRODUCER = -1


@dataclass(slots=True)
class Failure:
    """A failed or delayed request for one partition. ``offset`` is ``None`` until it is known."""

    number: int
    api: str
    client_id: str | None
    verdict: Verdict
    offset: int | None
    count: int = 0
    sequence: Sequence | None = None
    was_applied: bool = False
    ended_us: int = 0


class Batch(NamedTuple):
    """A batch in a response, with its records' times. ``is_read``: whether consumers receive its records."""

    base: int
    last: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    is_read: bool


@dataclass(slots=True)
class Log:
    """A partition. ``log_start`` and ``seen_end`` are the first ones that a response reported."""

    topic: str
    index: int
    log_start: int | None = None
    seen_end: int | None = None
    end: int | None = None
    first_appended: int | None = None
    committed: int = 0
    batches: dict[int, Batch] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    _appended: set[int] = field(default_factory=set)
    _expected: dict[tuple[int, int], int] = field(default_factory=dict)
    _uncertain: list[Failure] = field(default_factory=list)

    # --- what responses show -----------------------------------------------------------------------------------------

    def starts_at(self, offset: int) -> None:
        """Record a log start offset from a response."""
        if self.log_start is None and offset >= 0:
            self.log_start = offset

    def ends_at(self, offset: int) -> None:
        """Record a high watermark from a response."""
        if offset < 0:
            return
        if self.seen_end is None:
            self.seen_end = offset
        self._moves_to(offset)

    def _moves_to(self, offset: int) -> None:
        if self.end is None:
            self._resolve(offset)
        self.end = max(self.end or 0, offset)

    def _resolve(self, offset: int) -> None:
        """Assign offsets to the failures before the first known offset: they end where this batch begins."""
        unknown = [failure for failure in self.failures if failure.offset is None]
        at = offset - sum(failure.count for failure in unknown if failure.was_applied)
        for failure in unknown:
            failure.offset = max(at, 0)
            at += failure.count if failure.was_applied else 0

    def read(self, records: Mapping[str, Any], aborted: list[tuple[int, int]]) -> None:
        """Record batches of a fetch; ``aborted``: producer ids with the first offset of each aborted transaction."""
        for batch in records.get("batches") or ():
            by_aborted = batch["transactional"] and any(
                batch["producer_id"] == producer and batch["base_offset"] >= first for producer, first in aborted
            )
            self.batches[batch["base_offset"]] = Batch(
                batch["base_offset"],
                batch["last_offset"],
                batch["base_timestamp_ms"],
                batch["max_timestamp_ms"],
                not (batch["control"] or by_aborted),
            )

    # --- what producers did ------------------------------------------------------------------------------------------

    def appended(self, base: int, count: int, sequence: Sequence | None) -> None:
        """Record the offset of a batch, which may determine the offsets of failures before it."""
        self._moves_to(base)
        for each in self._uncertain:
            if each.verdict.code is None:
                again = sequence is not None and each.sequence == sequence
                each.was_applied = not again and each.offset is not None and base >= each.offset + each.count
            elif each.offset == base and (sequence is None or each.sequence != sequence):
                each.was_applied = False
        self._uncertain.clear()
        if self.first_appended is None:
            before = [failure for failure in self.failures if failure.was_applied and failure.offset is not None]
            self.first_appended = min([base, *(failure.offset or 0 for failure in before)])
        self.end = max(self.end or 0, base + count)
        self._appended.add(base)
        if sequence is not None:
            self._expected[sequence[:2]] = sequence[2] + count

    def failed(self, failure: Failure) -> None:
        """Record a batch that was refused, cut off or late."""
        if self._follows_from_another(failure):
            return
        failure.offset = self.end if failure.offset is None else failure.offset
        code = failure.verdict.code
        failure.was_applied = code in AFTER_APPEND
        if failure.was_applied and self.end is not None:
            self.end += failure.count
        if failure.was_applied or failure.verdict.cut is not None:
            self._uncertain.append(failure)
        self.failures.append(failure)

    def _follows_from_another(self, failure: Failure) -> bool:
        """Return whether the batch was out of order because of an earlier failure: it will be again."""
        if failure.verdict.code != "OUT_OF_ORDER_SEQUENCE_NUMBER" or failure.sequence is None:
            return False
        expected = self._expected.get(failure.sequence[:2])
        return failure.sequence[2] > (0 if expected is None else expected)

    # --- what a played-back log begins with --------------------------------------------------------------------------

    @property
    def begins_at(self) -> int:
        """Return the log end when the run began: its first batch's offset, else the end of all that was read."""
        if self.first_appended is not None:
            return self.first_appended
        read = max((batch.last + 1 for batch in self.batches.values()), default=0)
        return max(read, self.seen_end or 0, self.committed, self.log_start or 0)

    def records(self, most: int) -> Iterator[tuple[int, int]]:
        """Return offset and time of the last records that existed when the run began, in order."""
        records: list[tuple[int, int]] = []
        for batch in sorted(self.batches.values(), reverse=True):
            if batch.base >= self.begins_at or not batch.is_read:
                continue
            for offset in range(min(batch.last, self.begins_at - 1), batch.base - 1, -1):
                if len(records) == most:
                    return iter(records[::-1])
                records.append((offset, batch.max_timestamp_ms if offset == batch.last else batch.base_timestamp_ms))
        return iter(records[::-1])

    @property
    def has_others(self) -> bool:
        """Return whether others appended records after the first one produced in the run."""
        first = self.first_appended
        return first is not None and any(
            batch.is_read and batch.base >= first and batch.base not in self._appended
            for batch in self.batches.values()
        )

    @property
    def known(self) -> int:
        """Return how many records from before the run were read during it."""
        return sum(
            min(batch.last + 1, self.begins_at) - batch.base
            for batch in self.batches.values()
            if batch.is_read and batch.base < self.begins_at
        )


def sequence_of(records: Mapping[str, Any] | None) -> Sequence | None:
    """Return producer id, epoch and sequence of a batch; None if it has none."""
    if not records or records.get("producer_id", _NO_PRODUCER) == _NO_PRODUCER:
        return None
    return records["producer_id"], records["producer_epoch"], records["base_sequence"]
