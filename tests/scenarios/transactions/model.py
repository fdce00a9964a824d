"""What a cluster should do with transactions, in two hundred lines: the oracle of ``test_model``.

Markers are written at once; transaction.version is 2; clients are of before KIP-890 or since (``newer``).
"""

from collections import defaultdict
from dataclasses import dataclass, field


@dataclass
class Entry:
    """A record or a marker in a partition. ``fate``: None while its transaction is open, else whether it committed."""

    producer_id: int
    value: bytes | None
    fate: bool | None


@dataclass
class ProducerState:
    """What a partition knows of a producer; ``last`` is its last batch: first and last sequence, offset."""

    epoch: int
    last: tuple[int, int, int] | None = None
    open: bool = False


@dataclass
class PartitionModel:
    """A log and its producers."""

    log: list[Entry] = field(default_factory=list)
    producers: dict[int, ProducerState] = field(default_factory=dict)

    def is_open(self, producer_id: int, epoch: int) -> bool:
        """Whether that producer's transaction has records here."""
        known = self.producers.get(producer_id)
        return known is not None and known.open and known.epoch == epoch

    def is_behind(self, producer_id: int, epoch: int) -> bool:
        """Whether a later epoch was seen."""
        return producer_id in self.producers and epoch < self.producers[producer_id].epoch

    def append(self, producer_id: int, epoch: int, sequence: int, values: list[bytes]) -> int:
        """Offset of the batch, or the negative code."""
        known = self.producers.get(producer_id)
        batch = (sequence, sequence + len(values) - 1)
        if known and known.epoch == epoch and known.last and known.last[:2] == batch:
            return known.last[2]
        if self.is_behind(producer_id, epoch):
            return -47
        goes_on = known is not None and epoch == known.epoch and known.last is not None
        if known and sequence != (known.last[1] + 1 if goes_on and known.last else 0):
            return -45
        offset = len(self.log)
        self.producers[producer_id] = ProducerState(epoch, (*batch, offset), True)
        self.log += [Entry(producer_id, value, None) for value in values]
        return offset

    def mark(self, producer_id: int, epoch: int, committed: bool) -> None:
        """A marker ends the producer's open transaction."""
        for entry in (each for each in self.log if each.producer_id == producer_id and each.fate is None):
            entry.fate = committed
        known = self.producers.get(producer_id, ProducerState(-1))
        self.producers[producer_id] = ProducerState(epoch, known.last if known.epoch == epoch else None)
        self.log.append(Entry(producer_id, None, committed))

    @property
    def stable_offset(self) -> int:
        """Of the first record that is still open."""
        return next((n for n, entry in enumerate(self.log) if entry.fate is None), len(self.log))

    def values(self, *, committed: bool) -> list[bytes]:
        """What a consumer of either isolation level delivers."""
        entries = [entry for entry in self.log[: self.stable_offset] if entry.fate] if committed else self.log
        return [entry.value for entry in entries if entry.value is not None]


@dataclass
class IdModel:
    """A transactional id at its coordinator."""

    producer_id: int
    epoch: int
    state: str = "Empty"
    last_epoch: int = -1
    partitions: set[int | str] = field(default_factory=set)
    started_ms: int = 0


GROUP = "group"
"""The partition of the group's offsets, among the numbers of the topic's."""


@dataclass
class Model:
    """The whole cluster: ids, partitions, and one group's offset."""

    timeout_ms: int
    ids: dict[str, IdModel] = field(default_factory=dict)
    partitions: dict[int | str, PartitionModel] = field(default_factory=lambda: defaultdict(PartitionModel))
    pending: dict[int, tuple[int, int]] = field(default_factory=dict)
    committed: tuple[int, int] = (-1, -1)  # position in the offsets log, and offset; pending ones by producer id
    written: int = 0
    now_ms: int = 0

    def init(self, name: str, expected: tuple[int, int], fresh_id: int) -> tuple[int, int, int]:
        """InitProducerId after a transaction that was open is aborted; ``fresh_id`` is what the cluster gave."""
        known = self.ids.get(name)
        if known is None:
            self.ids[name] = IdModel(fresh_id, 0)
            return 0, fresh_id, 0
        if expected[0] not in (-1, known.producer_id):
            return 90, -1, -1
        if known.state == "Ongoing":
            self._end(known, False, bump=True)
            return 51, -1, -1
        if expected[0] == -1:
            known.epoch, known.last_epoch = known.epoch + 1, -1
        elif expected[1] == known.epoch:
            known.epoch, known.last_epoch = known.epoch + 1, known.epoch
        elif expected[1] != known.last_epoch:
            return 90, -1, -1
        known.state, known.partitions = "Empty", set()
        return 0, known.producer_id, known.epoch

    def join(self, name: str, producer: tuple[int, int], index: int | str) -> int:
        """Add a partition to the transaction, for a client or for a leader; the error code of the coordinator."""
        known = self.ids.get(name)
        if known is None or known.producer_id != producer[0]:
            return 49
        if known.epoch != producer[1]:
            return 90
        if known.state != "Ongoing":
            known.state, known.partitions, known.started_ms = "Ongoing", set(), self.now_ms
        known.partitions.add(index)
        return 0

    def send(
        self, name: str, producer: tuple[int, int], index: int, sequence: int, values: list[bytes], newer: bool
    ) -> int:
        """A transactional batch, added by its leader or by its client before; the offset or the negative code."""
        partition = self.partitions[index]
        if not newer and (code := self.join(name, producer, index)):
            return -code
        if not partition.is_open(*producer):
            if partition.is_behind(*producer):
                return -47
            if newer and (code := self.join(name, producer, index)):
                return -47 if code == 90 else -code
        return partition.append(*producer, sequence, values)

    def send_offsets(self, name: str, producer: tuple[int, int], offset: int) -> int:
        """TxnOffsetCommit of a client that adds nothing itself; the code."""
        partition = self.partitions[GROUP]
        if not partition.is_open(*producer):
            if partition.is_behind(*producer):
                return 47
            if code := self.join(name, producer, GROUP):
                return 47 if code == 90 else code
        self.written += 1
        self.pending[producer[0]] = (self.written, offset)
        partition.producers[producer[0]] = ProducerState(producer[1], None, True)
        return 0

    def end(self, name: str, producer: tuple[int, int], commit: bool, newer: bool) -> int:
        """EndTxn; the code."""
        known = self.ids[name]
        if known.producer_id != producer[0]:
            return 49
        done = known.state == ("CompleteCommit" if commit else "CompleteAbort")
        if newer and known.epoch == producer[1] + 1 and known.state.startswith("Complete"):
            return 0 if done else 48
        if known.epoch != producer[1]:
            return 90
        if known.state == "Ongoing" or (newer and not commit):
            self._end(known, commit, bump=newer)
            return 0
        return 0 if done and not newer else 48

    def _end(self, known: IdModel, commit: bool, *, bump: bool) -> None:
        if bump:
            known.epoch, known.last_epoch = known.epoch + 1, known.epoch
        for index in known.partitions if known.state == "Ongoing" else ():
            self.partitions[index].mark(known.producer_id, known.epoch, commit)
        waiting = self.pending.pop(known.producer_id, (-1, -1))
        self.committed = max(self.committed, waiting) if commit else self.committed
        known.state, known.partitions = "CompleteCommit" if commit else "CompleteAbort", set()

    def pass_time(self, ms: int) -> None:
        """Transactions that are open for longer than their timeout are aborted."""
        self.now_ms += ms
        for known in [each for each in self.ids.values() if each.state == "Ongoing"]:
            if known.started_ms + self.timeout_ms < self.now_ms:
                self._end(known, False, bump=True)

    def restart(self) -> None:
        """The coordinator forgets what is not in its log."""
        for known in self.ids.values():
            known.last_epoch = -1
