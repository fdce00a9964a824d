"""Hostile frames, generated from a seed: valid requests of every API and version, corrupted in many ways.

``Corpus`` has the valid requests; ``Hostility`` corrupts them. Opens no connections.
"""

import random
import struct
import types
import typing
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import cramjam
from crc32c import crc32c

from broker.handlers import APIS
from protocol.apis import ApiKey
from protocol.codec import encode_request, is_flexible, message_class
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.compression import Codec, compress
from protocol.records.records import Record, build_batch, frame_batch
from protocol.types import Message, field_types

ELSEWHERE = 77
"""Id of a broker that does not exist."""
TOPIC, GROUP, TRANSACTION = "hostile", "hostile-group", "hostile-tx"
COMPACTED = "hostile-compacted"
"""Topic for corrupted batches; the cleaner reads accepted ones too."""
TEXTS = {
    "topic": TOPIC,
    "topic_name": TOPIC,
    "name": TOPIC,
    "topic_names": TOPIC,
    "group_id": GROUP,
    "groups": GROUP,
    "groups_names": GROUP,
    "coordinator_keys": GROUP,
    "key": GROUP,
    "transactional_id": TRANSACTION,
    "v3_and_below_transactional_id": TRANSACTION,
    "protocol_type": "x",
    "resource_name": TOPIC,
    "client_software_name": "hostile",
    "client_software_version": "1.0",
    "feature": "transaction.version",
    "entity_type": "user",
}
NUMBERS = {
    "acks": 1,
    "broker_id": ELSEWHERE,
    "broker_ids": 1,
    "committed_offset": 1,
    "config_operation": 1,  # 0 means delete: nothing changes for the bystander
    "coordinator_epoch": 1,
    "count": 1,
    "max_bytes": 65_536,
    "min_bytes": 0,
    "max_wait_ms": 0,
    "num_partitions": 1,
    "offset": 0,
    "partition_max_bytes": 4096,
    "producer_id": 5,
    "rebalance_timeout_ms": 50,
    "replica_id": -1,
    "replicas": 1,
    "replication_factor": 1,
    "resource_type": 2,
    "session_epoch": -1,
    "session_timeout_ms": 6000,
    "timeout_ms": 50,
    "timestamp": -1,
    "transaction_timeout_ms": 1000,
    "transactional_timeout_ms": 1000,
    "upgrade_type": 1,
}
FLAGS = {"validate_only": True, "allow_auto_topic_creation": False}


@dataclass(frozen=True, slots=True)
class Attack:
    """Bytes to send. ``framed``: a complete frame, after which the connection may continue."""

    kind: str
    data: bytes
    framed: bool = True


class Corpus:
    """Valid requests of every served API and version, as payloads of frames."""

    def __init__(self, topic_id: UUID | None = None) -> None:
        self._topic_id = topic_id
        self._batch = build_batch([Record(index, 1_700_000_000_000, b"key", b"value") for index in range(3)])
        self.requests = [
            (api.key, version, self._payload(api.key, version))
            for api in APIS
            for version in range(api.versions[0], api.versions[1] + 1)
        ]
        self.bombs = [self.produce(bomb, TOPIC) for bomb in bombs()]

    def _payload(self, key: ApiKey, version: int) -> bytes:
        return encode_request(key, version, 0, "hostile", self._filled(message_class(key, "Request")))[4:]

    @staticmethod
    def produce(batch: bytes, topic: str) -> bytes:
        """Encode a Produce request with this batch."""
        data = TopicProduceData(topic, [PartitionProduceData(0, batch)])
        return encode_request(ApiKey.PRODUCE, 9, 0, "hostile", ProduceRequest(None, 1, 50, [data]))[4:]

    def _filled(self, message: type[Message]) -> Any:
        """Build a request with a value in each of its fields."""
        return message(**{name: self._value(name, hint) for name, hint in field_types(message).items()})

    def _value(self, name: str, hint: Any) -> Any:
        options = [each for each in _members(hint) if each is not type(None)]
        for each in options:
            if isinstance(each, type) and issubclass(each, Message):
                return self._filled(each)
        if UUID in options:
            return self._topic_id if name == "topic_id" else None
        if bytes in options:
            return bytes(self._batch) if name == "records" else b"\0\1\2\3"
        first = options[0]
        if typing.get_origin(first) is Sequence:
            return [self._value(name, typing.get_args(first)[0])]
        if first is bool:
            return FLAGS.get(name, False)
        if first is str:
            return TEXTS.get(name, "" if type(None) not in _members(hint) else None)
        if first is float:
            return 1.0
        return NUMBERS.get(name, 0)


def _members(hint: Any) -> tuple[Any, ...]:
    """Return the alternatives of a type: of ``X | None``, X and None."""
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return tuple(inner for each in typing.get_args(hint) for inner in _members(each))
    return (hint,)


def bombs() -> Iterator[bytes]:
    """Yield batches that are small on the wire, but very large or slow to process."""
    packer, piece = zlib.compressobj(9, zlib.DEFLATED, 31), bytes(1 << 20)
    gzip = b"".join(packer.compress(piece) for _ in range(300)) + packer.flush()
    zstd = bytes(cramjam.zstd.compress(bytes(64 << 20))) * 64
    smallest = bytes((12, 0, 0, 0, 1, 1, 0))
    millions = bytes(cramjam.zstd.compress(smallest * 4_000_000))
    yield bytes(carrying(Codec.GZIP, gzip, 1))
    yield bytes(carrying(Codec.ZSTD, zstd, 1))
    yield bytes(carrying(Codec.ZSTD, millions, 4_000_000))
    yield bytes(carrying(Codec.ZSTD, millions, 900_000))
    yield bytes(carrying(Codec.SNAPPY, b"\xff\xff\xff\xff\x0f\0x", 1))


def carrying(codec: Codec, stream: bytes, count: int) -> bytearray:
    """Build a batch with a compressed stream as its records."""
    plain = frame_batch(
        stream,
        count,
        base_offset=0,
        last_offset_delta=count - 1,
        base_timestamp_ms=1_700_000_000_000,
        max_timestamp_ms=1_700_000_000_000,
    )
    struct.pack_into(">h", plain, 21, codec)
    struct.pack_into(">I", plain, 17, crc32c(bytes(plain[21:])))
    return plain


# --- spoiling --------------------------------------------------------------------------------------------------------

INTERESTING = (b"\0", b"\x7f", b"\x80", b"\xff")
HUGE = (
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff",
    b"\x80\0\0\0",
    b"\0\x10\0\0",
    b"\xff\xff\xff\xff\x0f",
    b"\x80\x80\x40",
)
STRANGERS = (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", bytes.fromhex("16030100a50100") + bytes(60), b"\x7f\xff\xff\xff" * 4)


class Hostility:
    """An endless, repeatable stream of attacks."""

    def __init__(self, corpus: Corpus, seed: int) -> None:
        self._corpus, self._chance = corpus, random.Random(seed)
        self._kinds: list[tuple[str, Callable[[], bytes], float]] = [
            ("as it is", self._plain, 8),
            ("bits flipped", self._flipped, 24),
            ("bytes overwritten", self._overwritten, 20),
            ("huge numbers", self._huge, 14),
            ("cut short", self._cut, 10),
            ("spliced", self._spliced, 8),
            ("random body", self._random_body, 8),
            ("random frame", self._random_frame, 4),
            ("records spoiled", self._records, 6),
            ("nested lengths", self._nested, 3.98),
            ("bomb", self._bomb, 0.02),
        ]
        self._weights = [weight for _, _, weight in self._kinds]
        self._harmless = Attack("as it is", _framed(corpus.requests[0][2]))

    def attacks(self, count: int) -> list[Attack]:
        """Generate the next frames; one in 500 is another protocol, one in 1000 is incomplete."""
        attacks = []
        for name, make, _ in self._chance.choices(self._kinds, self._weights, k=count):
            fate = self._chance.random()
            if fate < 0.002:
                attacks.append(Attack("another protocol", self._chance.choice(STRANGERS), framed=False))
            elif fate < 0.003:
                data = _framed(make())
                attacks.append(Attack("half a frame", data[: max(len(data) // 2, 3)], framed=False))
            else:
                attacks.append(Attack(name, _framed(make())))
        return [each if _is_accident(each.data) else self._harmless for each in attacks]

    def _request(self) -> tuple[int, int, bytes]:
        return self._chance.choice(self._corpus.requests)

    def _body_at(self, key: int, version: int) -> int:
        return 10 + len(b"hostile") + (1 if is_flexible(key, version) else 0)

    def _plain(self) -> bytes:
        return self._request()[2]

    def _spoilable(self) -> tuple[bytearray, int]:
        """Return a request, and the position from which it is corrupted: mostly its body, sometimes its header too."""
        key, version, payload = self._request()
        start = 0 if self._chance.random() < 0.05 else self._body_at(key, version)
        return bytearray(payload), min(start, len(payload) - 1)

    def _flipped(self) -> bytes:
        data, start = self._spoilable()
        for _ in range(self._chance.choice((1, 1, 1, 2, 4, 16))):
            data[self._chance.randrange(start, len(data))] ^= 1 << self._chance.randrange(8)
        return bytes(data)

    def _overwritten(self) -> bytes:
        data, start = self._spoilable()
        for _ in range(self._chance.choice((1, 1, 2, 3, 8))):
            at = self._chance.randrange(start, len(data))
            data[at : at + 1] = self._chance.choice(INTERESTING)
        return bytes(data)

    def _huge(self) -> bytes:
        data, start = self._spoilable()
        at, number = self._chance.randrange(start, len(data)), self._chance.choice(HUGE)
        data[at : at + len(number)] = number
        return bytes(data)

    def _cut(self) -> bytes:
        data, start = self._spoilable()
        return bytes(data[: self._chance.randrange(start, len(data))])

    def _spliced(self) -> bytes:
        data, start = self._spoilable()
        other = self._request()[2]
        piece = other[self._chance.randrange(len(other)) :]
        at = self._chance.randrange(start, len(data))
        return bytes(data[:at]) + piece[: self._chance.randrange(1, 200)] + bytes(data[at:])

    def _random_body(self) -> bytes:
        key, version, payload = self._request()
        return payload[: self._body_at(key, version)] + self._chance.randbytes(self._chance.choice((1, 10, 100, 1000)))

    def _random_frame(self) -> bytes:
        return self._chance.randbytes(self._chance.choice((0, 1, 4, 9, 12, 40, 400)))

    def _nested(self) -> bytes:
        """Build nested arrays of maximal length: many elements from few bytes."""
        key, version, payload = self._request()
        one = self._chance.choice((b"\x02", b"\x01", b"\0\0\0\1", b"\0", b"\x7f"))
        return payload[: self._body_at(key, version)] + one * self._chance.choice((50, 500, 5000))

    def _records(self) -> bytes:
        """Build a batch with corrupted records or header, but a correct checksum."""
        chance = self._chance
        codec = chance.choice((Codec.NONE, Codec.NONE, Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD))
        count = chance.choice((1, 3, 20))
        plain = build_batch([Record(i, 1_700_000_000_000 + i, b"key-%d" % (i % 5), b"value") for i in range(count)])
        records = bytearray(plain[61:])
        for _ in range(chance.choice((0, 1, 1, 2, 5))):
            value = chance.choice((0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF, chance.randrange(256)))
            records[chance.randrange(len(records))] = value
        batch = carrying(codec, bytes(compress(codec, records)), count)
        if chance.random() < 0.3:  # the header too, but for offset, length, magic and checksum
            batch[chance.randrange(21, 61)] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))
        struct.pack_into(">I", batch, 17, crc32c(bytes(batch[21:])))
        return self._corpus.produce(bytes(batch), COMPACTED)

    def _bomb(self) -> bytes:
        return self._chance.choice(self._corpus.bombs)


def _is_accident(frame: bytes) -> bool:
    """Return whether a frame is not UnregisterBroker, which would rightly remove the only broker."""
    return frame[4:6] != struct.pack(">h", ApiKey.UNREGISTER_BROKER)


def _framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload
