"""What happened to the markers of recent transactions: written where, held and released when. For diagrams only.

Markers go from coordinator to leader by a function call, so the journal has no request for them; the timeline of a
transactional id has the decision and the end, not what happens in between.
"""

from collections import deque
from collections.abc import Iterator
from typing import Literal, NamedTuple

from protocol.log_records.transaction import TopicPartition

_MOST = 10_000
What = Literal["written", "failed", "left out", "held", "released"]


class MarkerNote(NamedTuple):
    """One of them. ``place``, ``leader`` and ``offset`` are of a marker; ``offset`` is -1 where none was written.

    A marker is left out where its partition has no leader: its transaction stays open there, as in Kafka (KAFKA-20734).
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
    """The step at which it is held, or the error with which it failed."""
    newest: int = 0
    """Id in the journal of the newest request then; times are no order where the clock is frozen."""


class MarkerNotes:
    """The latest of all transactional ids."""

    def __init__(self) -> None:
        self._notes: deque[MarkerNote] = deque(maxlen=_MOST)

    def add(self, note: MarkerNote) -> None:
        """One more; the oldest is dropped where there are too many. A hold that stops two things is one."""
        if note.place is None:
            alike = (each for each in reversed(self._notes) if each[1] == note[1] and each.place is None)
            last = next(alike, None)
            if last is not None and (last.what, last.detail) == (note.what, note.detail):
                return
        self._notes.append(note)

    def of(self, transactional_id: str) -> Iterator[MarkerNote]:
        """Those of one id, the oldest first."""
        return (note for note in self._notes if note.transactional_id == transactional_id)

    def left_out(self) -> Iterator[MarkerNote]:
        """Those of markers that were left out, of all ids."""
        return (note for note in self._notes if note.what == "left out")

    def clear(self) -> None:
        """Forget them."""
        self._notes.clear()
