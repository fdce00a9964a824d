"""Notes on the markers of recent transactions (written, failed, held, released), for the timelines.

A coordinator passes markers to partition leaders by a function call, so the journal has no request for them: it has the
decision and the completion, but nothing in between.
"""

from collections import deque
from collections.abc import Iterator
from typing import Literal, NamedTuple

from protocol.log_records.transaction import TopicPartition

_MOST = 10_000
What = Literal["written", "failed", "left out", "held", "released"]


class MarkerNote(NamedTuple):
    """One event. ``place``, ``leader`` and ``offset`` describe a marker; ``offset`` is -1 if none was written.

    A marker is left out if its partition has no leader: the transaction stays open there, as in Kafka (KAFKA-20734).
    """

    at_ms: int
    transactional_id: str
    what: What
    producer_id: int
    producer_epoch: int
    committed: bool
    place: TopicPartition | None = None
    leader: int = -1
    offset: int = -1
    detail: str = ""
    """The step at which the transaction is held, or the error with which the write failed."""
    newest: int = 0
    """Journal id of the newest request at that moment; times cannot order events while the clock is frozen."""


class MarkerNotes:
    """The latest notes on all transactional ids."""

    def __init__(self) -> None:
        self._notes: deque[MarkerNote] = deque(maxlen=_MOST)

    def add(self, note: MarkerNote) -> None:
        """Add a note, dropping the oldest beyond the limit; a hold noted twice in a row is kept once."""
        if note.place is None:
            alike = (each for each in reversed(self._notes) if each[1] == note[1] and each.place is None)
            last = next(alike, None)
            if last is not None and (last.what, last.detail) == (note.what, note.detail):
                return
        self._notes.append(note)

    def of(self, transactional_id: str) -> Iterator[MarkerNote]:
        """Return the notes on one transactional id, oldest first."""
        return (note for note in self._notes if note.transactional_id == transactional_id)

    def left_out(self) -> Iterator[MarkerNote]:
        """Return the notes on markers that were left out, of all transactional ids."""
        return (note for note in self._notes if note.what == "left out")

    def clear(self) -> None:
        """Drop all notes."""
        self._notes.clear()
