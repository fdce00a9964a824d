"""Records of ``__transaction_state``: one per transition of a transactional id (transactions F.2).

Written by hand rather than through kio's entities: a value may carry tags of a later Kafka, which have to be skipped
(transactions DSK-06) and which kio's reader rejects.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from typing import Final

from protocol.uvarint import read_uvarint, uvarint

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_TIMESTAMP_MS: Final = -1

TopicPartition = tuple[str, int]


class TransactionState(IntEnum):
    """The state of a transactional id, numbered as in the log. After Kafka's ``TransactionState``.

    The last two are never written to a log: they are target states of a transition in flight.
    """

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def text(self) -> str:
        """Name of the state in DescribeTransactions and ListTransactions, such as ``PrepareCommit``."""
        return _TEXTS[self]


_TEXTS: Final = {state: "".join(part.capitalize() for part in state.name.split("_")) for state in TransactionState}


@dataclass(slots=True, unsafe_hash=True)
class TransactionRecord:
    """State of a transactional id after a transition; it never changes. Times in ms; partitions: ``None`` while Empty.

    ``client_transaction_version`` is the protocol of the client's last operation (0, or 2 since KIP-890);
    ``value_version`` is 0 where ``transaction.version`` is finalized at 0, else 1. ``last_epoch`` is the epoch before
    the last bump (KIP-360): memory only, as in Kafka, so a record read back has -1 (transactions A.3.3).
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState
    partitions: frozenset[TopicPartition] | None
    last_update_ms: int
    start_ms: int = NO_TIMESTAMP_MS
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    client_transaction_version: int = 0
    value_version: int = 1
    last_epoch: int = field(default=NO_PRODUCER_EPOCH, compare=False)

    def __init__(  # a dataclass's own is made from a string, which mypyc does not see
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        timeout_ms: int,
        state: TransactionState,
        partitions: frozenset[TopicPartition] | None,
        last_update_ms: int,
        start_ms: int = NO_TIMESTAMP_MS,
        previous_producer_id: int = NO_PRODUCER_ID,
        next_producer_id: int = NO_PRODUCER_ID,
        client_transaction_version: int = 0,
        value_version: int = 1,
        last_epoch: int = NO_PRODUCER_EPOCH,
    ) -> None:
        self.transactional_id, self.timeout_ms = transactional_id, timeout_ms
        self.state, self.partitions = state, partitions
        self.producer_id, self.producer_epoch, self.last_epoch = producer_id, producer_epoch, last_epoch
        self.previous_producer_id, self.next_producer_id = previous_producer_id, next_producer_id
        self.last_update_ms, self.start_ms = last_update_ms, start_ms
        self.client_transaction_version, self.value_version = client_transaction_version, value_version


@dataclass(frozen=True, slots=True)
class TransactionTombstone:
    """Removal of a transactional id, unused for ``transactional.id.expiration.ms``."""

    transactional_id: str


_KEY_TYPE: Final = b"\0\0"
_HEAD: Final = struct.Struct(">hqhib")
_TIMES: Final = struct.Struct(">qq")
_SHORT: Final = struct.Struct(">h")
_INT: Final = struct.Struct(">i")
_LONG_TAG: Final = struct.Struct(">BBq")
_SHORT_TAG: Final = struct.Struct(">BBh")
_PREVIOUS_TAG, _NEXT_TAG, _CLIENT_VERSION_TAG = 0, 1, 2
_INT64_BYTES: Final = 8
_NULL_ARRAY: Final = _INT.pack(-1)


# --- writing ---------------------------------------------------------------------------------------------------------


def encode(record: TransactionRecord | TransactionTombstone) -> tuple[bytes, bytes | None]:
    """Return key and value of a record; the value of a tombstone is ``None``."""
    name = record.transactional_id.encode()
    key = _KEY_TYPE + _SHORT.pack(len(name)) + name
    if isinstance(record, TransactionTombstone):
        return key, None
    head = _HEAD.pack(record.value_version, record.producer_id, record.producer_epoch, record.timeout_ms, record.state)
    times = _TIMES.pack(record.last_update_ms, record.start_ms)
    if record.value_version == 0:
        return key, head + _old_partitions(record.partitions) + times
    return key, head + _partitions(record.partitions) + times + _tags(record)


def _grouped(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Group partitions by topic, sorted: Kafka leaves the order open, tests need one."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return topics


def _old_partitions(partitions: frozenset[TopicPartition] | None) -> bytes:
    if partitions is None:
        return _NULL_ARRAY
    topics = _grouped(partitions)
    out = [_INT.pack(len(topics))]
    for topic, indexes in topics.items():
        name = topic.encode()
        out += _SHORT.pack(len(name)), name, struct.pack(f">i{len(indexes)}i", len(indexes), *indexes)
    return b"".join(out)


@lru_cache(maxsize=256)  # ours: a transaction is written several times with the same partitions
def _partitions(partitions: frozenset[TopicPartition] | None) -> bytes:
    if not partitions:
        return b"\0" if partitions is None else b"\1"
    topics = _grouped(partitions)
    out = [uvarint(len(topics) + 1)]
    for topic, indexes in topics.items():
        name = topic.encode()
        out += uvarint(len(name) + 1), name, uvarint(len(indexes) + 1)
        out += struct.pack(f">{len(indexes)}i", *indexes), b"\0"
    return b"".join(out)


def _tags(record: TransactionRecord) -> bytes:
    tags = []
    if record.previous_producer_id != NO_PRODUCER_ID:
        tags.append(_LONG_TAG.pack(_PREVIOUS_TAG, _INT64_BYTES, record.previous_producer_id))
    if record.next_producer_id != NO_PRODUCER_ID:
        tags.append(_LONG_TAG.pack(_NEXT_TAG, _INT64_BYTES, record.next_producer_id))
    if record.client_transaction_version:
        tags.append(_SHORT_TAG.pack(_CLIENT_VERSION_TAG, 2, record.client_transaction_version))
    return bytes((len(tags),)) + b"".join(tags) if tags else b"\0"


# --- reading ---------------------------------------------------------------------------------------------------------


def decode(key: bytes | None, value: bytes | None) -> TransactionRecord | TransactionTombstone | None:
    """Decode a record of the log; ``None`` for a kind or version of a later Kafka (transactions DSK-05)."""
    if key is None or key[:2] != _KEY_TYPE:
        return None
    (size,) = _SHORT.unpack_from(key, 2)
    name = bytes(key[4 : 4 + size]).decode()  # after type and size, two bytes each
    if value is None:
        return TransactionTombstone(name)
    (version,) = _SHORT.unpack_from(value)
    return _Value(bytes(value)).record(name, version) if version in (0, 1) else None


class _Value:
    """A cursor over one value."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, _HEAD.size

    def record(self, name: str, version: int) -> TransactionRecord:
        _, producer_id, producer_epoch, timeout_ms, state = _HEAD.unpack_from(self._data)
        partitions = self._old_partitions() if version == 0 else self._partitions()
        last_update_ms, start_ms = self._take(_TIMES)
        tags = self._tags() if version else {}
        return TransactionRecord(
            name,
            producer_id,
            producer_epoch,
            timeout_ms,
            TransactionState(state),
            partitions,
            last_update_ms,
            start_ms,
            tags.get(_PREVIOUS_TAG, NO_PRODUCER_ID),
            tags.get(_NEXT_TAG, NO_PRODUCER_ID),
            tags.get(_CLIENT_VERSION_TAG, 0),
            version,
        )

    def _take(self, shape: struct.Struct) -> tuple[int, ...]:
        values = shape.unpack_from(self._data, self._at)
        self._at += shape.size
        return values

    def _bytes(self, size: int) -> bytes:
        self._at += size
        if self._at > len(self._data):
            raise struct.error(f"{size} bytes at {self._at - size} of {len(self._data)}")
        return self._data[self._at - size : self._at]

    def _uvarint(self) -> int:
        value, self._at = read_uvarint(self._data, self._at)
        return value

    def _old_partitions(self) -> frozenset[TopicPartition] | None:
        (topics,) = self._take(_INT)
        if topics < 0:
            return None
        partitions = set()
        for _ in range(topics):
            topic = self._bytes(self._take(_SHORT)[0]).decode()
            (count,) = self._take(_INT)
            partitions |= {(topic, index) for index in self._take(struct.Struct(f">{count}i"))}
        return frozenset(partitions)

    def _partitions(self) -> frozenset[TopicPartition] | None:
        topics = self._uvarint() - 1
        if topics < 0:
            return None
        partitions = set()
        for _ in range(topics):
            topic = self._bytes(self._uvarint() - 1).decode()
            count = self._uvarint() - 1
            partitions |= {(topic, index) for index in self._take(struct.Struct(f">{count}i"))}
            self._tags()
        return frozenset(partitions)

    def _tags(self) -> dict[int, int]:
        return {
            self._uvarint(): int.from_bytes(self._bytes(self._uvarint()), signed=True) for _ in range(self._uvarint())
        }
