"""Sends commit and abort markers from a transaction's coordinator to the leaders of its partitions.

The coordinator answers EndTxn first; the markers are written in a later turn of the event loop, so that there is time
between the two, as between real brokers. A transaction can be held there on request (:class:`Holds`). Follows Kafka's
``TransactionMarkerChannelManager`` (transactions B.6, C.5).
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from broker.coordination.coordinators import GROUP_TOPIC, TransactionCoordinator
from broker.coordination.metadata.image import NO_LEADER
from broker.coordination.outcome import WriteMarkers
from broker.coordination.runtime import State
from broker.coordination.transaction.transitions import ProducerIdAndEpoch
from broker.replication.partition import ReplicatedPartition
from broker.request.context import ClusterView
from broker.request.node import Node
from broker.settings.releases import Behaviour
from protocol.deferred import dataclass
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.transaction import TopicPartition
from protocol.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

if TYPE_CHECKING:
    from broker.coordination.coordinators import GroupCoordinator
    from broker.time.timers import Timer


# --- notes for the timelines ------------------------------------------------------------------------------------------
#
# A coordinator passes markers to partition leaders by a function call, so the journal has no request for them: it has
# the decision and the completion, but nothing in between.

_MOST_NOTES = 10_000
"""As many as the timelines keep events (`steering/timelines/event_log.py`), which are made of these."""
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
    """The latest notes (written, failed, held, released) on the markers of all transactional ids."""

    def __init__(self) -> None:
        self._notes: deque[MarkerNote] = deque(maxlen=_MOST_NOTES)

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


# --- the markers of a coordinator -----------------------------------------------------------------------------------

Answered = Callable[[ErrorCode], None]


class Marker(NamedTuple):
    """A marker to write. ``transaction_version`` decides how the partition leader checks the producer epoch."""

    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int
    transaction_version: int

    @property
    def has_producer(self) -> bool:
        """Whether it has a producer id and an epoch; without them Kafka cannot build a marker."""
        return self.producer_id != NO_PRODUCER_ID and self.producer_epoch != NO_PRODUCER_EPOCH


# --- one partition ---------------------------------------------------------------------------------------------------


def write_marker(cluster: ClusterView, node: Node, place: TopicPartition, marker: Marker, answered: Answered) -> int:
    """Write a marker at the partition's leader; ``answered`` gets the result, immediately or once it is replicated.

    On a partition of ``__consumer_offsets`` it also completes the groups' pending offsets (transactions C.5.3).
    Returns the marker's offset, -1 if it was not written.
    """
    try:
        partition = node.partition(*place)
        shard = _group_shard(node, place)
        if not marker.has_producer:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        # Group coordinators append with acks=1, as they do for offsets, and wait for the replicas themselves.
        all_in_sync = shard is None or not cluster.release.has(Behaviour.WRITES_OF_GROUPS_WAIT)
        info = partition.append_marker(node.id, *marker, cluster.clock.now_ms(), all_in_sync=all_in_sync)
        if shard is not None:
            end_offset = info.last_offset + 1
            shard.marker_written(marker.producer_id, marker.producer_epoch, marker.committed, end_offset)
    except KafkaError as error:
        answered(error.code)
        return -1
    if partition.led_by(node.id).high_watermark > info.last_offset:
        answered(ErrorCode.NONE)
    else:
        timeout_ms = node.settings.int("request.timeout.ms")
        _Replication(cluster, node, partition, info.last_offset, answered).wait(timeout_ms)
    return info.last_offset


def _group_shard(node: Node, place: TopicPartition) -> "GroupCoordinator | None":
    """Return the group coordinator of an offsets partition; refuse as without a leader if it is absent or loading."""
    topic, index = place
    if topic != GROUP_TOPIC:
        return None
    shard = node.coordinators.groups.get(index)
    if shard is None or shard.state is not State.ACTIVE:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return shard


class _Replication:
    """The wait for the in-sync replicas to have a marker that the leader has appended."""

    def __init__(
        self, cluster: ClusterView, node: Node, partition: ReplicatedPartition, offset: int, answered: Answered
    ) -> None:
        self._cluster, self._node, self._partition = cluster, node, partition
        self._offset, self._answered = offset, answered
        self._timer: Timer | None = None

    def wait(self, timeout_ms: int) -> None:
        """Call ``answered`` when the marker is replicated, the leader has changed, or the timeout has passed."""
        clock = self._cluster.clock
        self._timer = clock.call_at(clock.now_ms() + timeout_ms, lambda: self._end(ErrorCode.REQUEST_TIMED_OUT))
        self._partition.watch(self._look)

    def _look(self) -> None:
        try:
            if self._partition.led_by(self._node.id).high_watermark > self._offset:
                self._end(ErrorCode.NONE)
        except KafkaError as error:
            self._end(error.code)

    def _end(self, code: ErrorCode) -> None:
        self._partition.unwatch(self._look)
        if self._timer is not None:
            self._timer.cancel()
        self._answered(code)


# --- holding a transaction -------------------------------------------------------------------------------------------


class Step(Enum):
    """The step at which a commit or abort can be held."""

    PREPARE = "prepare"
    """The decision is written and answered; no marker is written."""
    MARKERS = "markers"
    """Some markers are written."""
    COMPLETE = "complete"
    """All markers are written; the coordinator has not written the completion."""


@dataclass(slots=True)
class _Hold:
    at: Step
    markers_left: int
    waiting: list[Callable[[], None]] = field(default_factory=list)


class Holds:
    """Transactional ids that are held, and at which step. A hold applies to every transaction until it is released."""

    def __init__(self) -> None:
        self._holds: dict[str, _Hold] = {}

    def hold(self, transactional_id: str, at: Step, after_markers: int = 0) -> None:
        """Hold the next commits or aborts of the id at a step; ``after_markers`` applies to :attr:`Step.MARKERS` only.

        Transactions stopped by an earlier hold stay stopped.
        """
        waiting = self._holds[transactional_id].waiting if transactional_id in self._holds else []
        self._holds[transactional_id] = _Hold(at, after_markers if at is Step.MARKERS else 0, waiting)

    def release(self, transactional_id: str) -> bool:
        """Release a hold and continue what it stopped; return false if there was none."""
        hold = self._holds.pop(transactional_id, None)
        if hold is None:
            return False
        for go_on in hold.waiting:
            go_on()
        return True

    def held(self, transactional_id: str) -> tuple[Step, bool] | None:
        """Return the step at which the id is held, and whether a transaction has stopped there; ``None``: no hold."""
        hold = self._holds.get(transactional_id)
        return None if hold is None else (hold.at, bool(hold.waiting))

    def clear(self) -> None:
        """Drop all holds, with what they stopped."""
        self._holds.clear()

    def passes_marker(self, transactional_id: str, go_on: Callable[[], None]) -> bool:
        """Whether one more marker may be written now; if not, ``go_on`` is called at the release."""
        hold = self._holds.get(transactional_id)
        if hold is None or hold.at is Step.COMPLETE:
            return True
        if hold.markers_left > 0:
            hold.markers_left -= 1
            return True
        hold.waiting.append(go_on)
        return False

    def passes_completion(self, transactional_id: str, go_on: Callable[[], None]) -> bool:
        """Whether the coordinator may write that all markers are written; see :meth:`passes_marker`."""
        hold = self._holds.get(transactional_id)
        if hold is None:
            return True
        hold.waiting.append(go_on)
        return False


# --- all partitions of a transaction ---------------------------------------------------------------------------------


class Markers:
    """Performs the coordinators' :class:`WriteMarkers` effects on the cluster's brokers."""

    def __init__(self, cluster: ClusterView, newest_request: Callable[[], int]) -> None:
        self._cluster, self._newest_request = cluster, newest_request
        self.holds = Holds()
        self.notes = MarkerNotes()

    def clear(self) -> None:
        """Drop all holds and notes, for a reset of the cluster."""
        self.holds, self.notes = Holds(), MarkerNotes()

    def perform(self, runtime: TransactionCoordinator, effect: WriteMarkers) -> None:
        """Write the markers in a later turn of the event loop."""
        asyncio.get_running_loop().call_soon(self._send, runtime, effect, sorted(effect.partitions))

    def _send(self, runtime: TransactionCoordinator, effect: WriteMarkers, places: list[TopicPartition]) -> None:
        """Write the markers that are not held; report the results known now together, and later ones singly."""
        if runtime.state is not State.ACTIVE:
            return  # the coordinator has moved: the new one sends all markers
        report = _Report(self, runtime, effect)
        while places:
            if not self.holds.passes_marker(effect.transactional_id, lambda: self._released(runtime, effect, places)):
                self._note_hold(effect)
                break
            self._write(runtime, effect, places.pop(0), report)
        report.send(nothing_to_do=not effect.partitions)

    def _released(self, runtime: TransactionCoordinator, effect: WriteMarkers, places: list[TopicPartition]) -> None:
        self._note(effect, "released")
        self._send(runtime, effect, places)

    def _note_hold(self, effect: WriteMarkers) -> None:
        held = self.holds.held(effect.transactional_id)
        self._note(effect, "held", detail="" if held is None else held[0].value)

    def _note(self, effect: WriteMarkers, what: What, detail: str = "", **written: Any) -> None:
        producer = (effect.producer_id, effect.producer_epoch, effect.committed)
        now_ms = self._cluster.clock.now_ms()
        newest = self._newest_request()
        note = MarkerNote(now_ms, effect.transactional_id, what, *producer, detail=detail, newest=newest, **written)
        self.notes.add(note)

    def _write(
        self, runtime: TransactionCoordinator, effect: WriteMarkers, place: TopicPartition, report: "_Report"
    ) -> None:
        partition = self._cluster.image.partition(*place)
        if partition is None or partition.leader == NO_LEADER:
            # The topic is deleted; or, as in 4.3.1 (KAFKA-20734), the partition has no leader, and is left out.
            if partition is not None:
                self._note(effect, "left out", place=place)
            report.note(place, ErrorCode.NONE)
            return
        node = self._cluster.nodes.get(partition.leader)
        if node is None or node.silent:
            report.note(place, ErrorCode.NETWORK_EXCEPTION)  # down or paused, but still registered as the leader
            return
        marker = Marker(
            effect.producer_id, effect.producer_epoch, effect.committed, runtime.epoch, effect.transaction_version
        )
        offset = write_marker(self._cluster, node, place, marker, lambda code: report.note(place, code))
        what: What = "failed" if offset < 0 else "written"
        self._note(effect, what, place=place, leader=node.id, offset=offset)

    def report(
        self, runtime: TransactionCoordinator, effect: WriteMarkers, results: dict[TopicPartition, ErrorCode]
    ) -> None:
        """Report the results of some markers to the coordinator."""
        name, producer = effect.transactional_id, ProducerIdAndEpoch(effect.producer_id, effect.producer_epoch)
        completes = self.holds.passes_completion(name, lambda: self._completed(runtime, effect))
        if not completes:
            self._note_hold(effect)
        runtime.submit(
            lambda now_ms: runtime.machine.markers_written(name, producer, results, now_ms, completes=completes)
        )

    def _completed(self, runtime: TransactionCoordinator, effect: WriteMarkers) -> None:
        self._note(effect, "released")
        self.report(runtime, effect, {})


class _Report:
    """Collects the results known immediately, to report them to the coordinator together; later ones go singly."""

    def __init__(self, markers: Markers, runtime: TransactionCoordinator, effect: WriteMarkers) -> None:
        self._markers, self._runtime, self._effect = markers, runtime, effect
        self._results: dict[TopicPartition, ErrorCode] | None = {}

    def note(self, place: TopicPartition, code: ErrorCode) -> None:
        if self._results is None:
            self._markers.report(self._runtime, self._effect, {place: code})
        else:
            self._results[place] = code

    def send(self, *, nothing_to_do: bool) -> None:
        results, self._results = self._results, None
        if results or nothing_to_do:
            self._markers.report(self._runtime, self._effect, results or {})
