"""The topic metadata that groups read, and the hash that detects its changes (groups C.6)."""

import struct
from collections.abc import Iterable, Mapping
from typing import Protocol
from uuid import UUID

import xxhash

from protocol.java import as_long, utf16, utf16_length

_MAGIC = b"\x00"
_LONG, _INT = struct.Struct("<q"), struct.Struct("<i")


class Topic(Protocol):
    """The part of a topic that groups read."""

    @property
    def name(self) -> str:
        """The topic name."""
        ...

    @property
    def id(self) -> UUID:
        """The topic id."""
        ...

    @property
    def racks(self) -> Iterable[Iterable[str]]:
        """For each partition, in order, the racks of its replicas, with repetitions."""
        ...

    @property
    def partition_count(self) -> int:
        """The number of partitions."""
        ...


class Topics(Protocol):
    """The current topics of the cluster."""

    @property
    def version(self) -> int:
        """The metadata version: the offset of the last metadata record."""
        ...

    @property
    def newest_version(self) -> int:
        """The metadata version in which the last topic was created, or a later one in which that was noticed."""
        ...

    def named(self, name: str) -> Topic | None:
        """Return the topic with that name, or ``None``."""
        ...

    def of_id(self, topic_id: UUID) -> Topic | None:
        """Return the topic with that id, or ``None``."""
        ...

    def names(self) -> Iterable[str]:
        """Return the names of all topics, also of internal ones."""
        ...


class NoTopics:
    """A cluster without topics."""

    version = newest_version = 0

    def named(self, name: str) -> Topic | None:  # noqa: ARG002
        """Return nothing."""
        return None

    def of_id(self, topic_id: UUID) -> Topic | None:  # noqa: ARG002
        """Return nothing."""
        return None

    def names(self) -> Iterable[str]:
        """Return nothing."""
        return ()


def metadata_hash(names: Iterable[str], topics: Topics) -> int:
    """Return Kafka's hash (``Utils.computeGroupHash``) of the existing topics with these names; 0 without any.

    XXH3 over hash4j's input: numbers little-endian, a string as UTF-16LE units and their count.
    """
    known = {name: topic for name in names if (topic := topics.named(name)) is not None}
    if not known:
        return 0
    merged = b"".join(_LONG.pack(_topic_hash(known[name])) for name in sorted(known, key=utf16))
    return as_long(xxhash.xxh3_64_intdigest(merged))


def _topic_hash(topic: Topic) -> int:
    most, least = struct.unpack(">qq", topic.id.bytes)
    parts = [_MAGIC, _LONG.pack(most), _LONG.pack(least), _text(topic.name), _INT.pack(topic.partition_count)]
    for index, racks in enumerate(topic.racks):
        sorted_racks = sorted(racks, key=utf16)
        parts.append(_INT.pack(index))
        for rack in sorted_racks:
            parts += [_INT.pack(utf16_length(rack)), _text(rack)]
    return as_long(xxhash.xxh3_64_intdigest(b"".join(parts)))


def _text(text: str) -> bytes:
    raw = text.encode("utf-16-le", "surrogatepass")
    return raw + _INT.pack(len(raw) // 2)


def existing(names: Iterable[str], topics: Topics) -> Mapping[str, Topic]:
    """Return the existing topics with these names."""
    return {name: topic for name in names if (topic := topics.named(name)) is not None}
