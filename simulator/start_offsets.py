"""Records of share groups that Kafka before 4.4, too, delivers again after they were accepted or rejected.

A leader repeats a write that its share coordinator has not confirmed, while later ones succeed: in Kafka's
``PersisterStateManager`` each write has attempts and pauses of its own. Before 4.4 the coordinator stores the start
offset of the late one, which sets the stored one back, and has dropped the states of the offsets between them. This
leader goes on with what it has in memory; the next one reads the state, and delivers those offsets again
(apache/kafka#23074). Members get no error, and process such a record twice.

The excuse is about one offset. The log of ``__share_group_state`` has to show that the start offset had passed it and
was set back, and that neither the start offset nor the record's own state has passed it since. The write that set it
back was stored by a release before 4.4, and had begun before the one by which the start offset had passed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

from broker.coordination.coordinators import SHARE_TOPIC
from broker.coordination.share_state.machine import ShareMachine, ShareOutcome, StateWrite
from broker.coordination.share_state.persister import SharePartitionKey
from broker.request.share_state import SharePersister
from broker.settings.releases import Behaviour
from protocol.log_records.share_state import ShareRecord, ShareValue, decode
from protocol.records.records import read_records
from simulator.cluster import Servers
from simulator.history import Place
from simulator.process import replaced
from storage.log.partition_log import PartitionLog

SET_BACK = "a late write of share state had set the start offset back (before 4.4, apache/kafka#23074)"
_AVAILABLE = 0
"""The delivery state of a record that can be acquired again."""


@dataclass(frozen=True, slots=True)
class Write:
    """A leader's write of share state that a coordinator has stored.

    ``began``: its number in the order of first attempts. ``sets_back``: whether the release stores a lower start
    offset. ``stored_us``: when it was last stored, in virtual time.
    """

    began: int
    sets_back: bool
    stored_us: int


class StartOffsets:
    """The writes of share state in a run."""

    def __init__(self, servers: Servers, now_us: Callable[[], int]) -> None:
        self._servers, self._now_us = servers, now_us
        self._count = 0
        self._began: dict[tuple[SharePartitionKey, StateWrite], int] = {}
        self._stored: dict[ShareRecord, Write] = {}

    def __deepcopy__(self, _known: object) -> Self:
        """Return the same one: a history in a snapshot has the writes of the whole run."""
        return self

    @contextmanager
    def observed(self) -> Iterator[None]:
        """Note the writes of leaders within the block, and what coordinators store of them."""
        send, store = SharePersister.write, ShareMachine.write

        def sent(persister: SharePersister, key: SharePartitionKey, **fields: Any) -> Any:
            change = StateWrite(**{**fields, "batches": tuple(fields["batches"])})
            self._count += 1
            self._began[key, change] = self._count
            return send(persister, key, **fields)

        def stored(machine: ShareMachine, key: SharePartitionKey, change: StateWrite, *rest: Any) -> ShareOutcome:
            outcome = store(machine, key, change, *rest)
            began = self._began.get((key, change))
            sets_back = not self._servers.cluster.release.has(Behaviour.SHARE_STATE_NEVER_GOES_BACK)
            if began is not None:
                records = (each for each in outcome.records if isinstance(each, ShareRecord))
                self._stored.update(dict.fromkeys(records, Write(began, sets_back, self._now_us())))
            return outcome

        with replaced(SharePersister, "write", sent), replaced(ShareMachine, "write", stored):
            yield

    def why(self, group: str, place: Place, offset: int, asked_us: int) -> str:
        """Return why Kafka, too, delivers a record again to a fetch that was sent then; empty: it does not."""
        cluster = self._servers.cluster
        topic = cluster.image.topics.get(place[0])
        if topic is None:
            return ""
        key = SharePartitionKey(group, topic.id, place[1])
        index = next(iter(cluster.nodes.values())).coordinating_partition(SHARE_TOPIC, key.coordinator_key)
        partition = cluster.partitions.get((SHARE_TOPIC, index))
        log = None if partition is None else partition.logs.get(partition.state.leader)
        if log is None or not was_set_back(_records_of(log, key), self._stored, offset, asked_us):
            return ""
        return SET_BACK


def _records_of(log: PartitionLog, key: SharePartitionKey) -> Iterator[ShareRecord]:
    """Return a share partition's records in a log of ``__share_group_state``."""
    for batch in log.reader.replay_from(log.log_start_offset):
        for each in () if batch.is_control else read_records(batch):
            record = decode(each.key, each.value)
            if record is not None and (record.group_id, record.topic_id, record.partition) == key:
                yield record


def was_set_back(
    records: Iterable[ShareRecord], stored: Mapping[ShareRecord, Write], offset: int, asked_us: int
) -> bool:
    """Whether a late write lets a leader deliver the record at ``offset`` again, to a fetch that was sent then.

    ``records`` are a share partition's. What was stored after the fetch was sent does not settle the record again:
    the leader may have answered before.
    """
    passing: Write | None = None
    passed = excused = False
    for record in records:
        write, value = stored.get(record), record.value
        settles_later = excused and write is not None and write.stored_us >= asked_us
        if value is None:
            passed = excused = False
        elif value.start_offset > offset:
            if not passed and not settles_later:
                passing, passed, excused = write, True, False
        elif passed and value.start_offset >= 0:
            passed = False
            is_late = passing is not None and write is not None and write.sets_back and write.began < passing.began
            excused = is_late and not _is_done(value, offset)
        elif _is_done(value, offset) and not settles_later:
            excused = False
    return excused


def _is_done(value: ShareValue, offset: int) -> bool:
    """Whether a record of the log has a state of the offset with which it is not available again."""
    return any(
        each.first_offset <= offset <= each.last_offset and each.delivery_state != _AVAILABLE
        for each in value.state_batches
    )
