"""What consumer groups know of the cluster's topics, and the hash by which they notice that it changed (groups C.6)."""

import struct
from collections.abc import Iterable, Mapping
from typing import Protocol
from uuid import UUID

import xxhash

from protocol.java import utf16, utf16_length

_MAGIC = b"\x00"
_LONG, _INT = struct.Struct("<q"), struct.Struct("<i")


class Topic(Protocol):
    """A topic as far as groups care."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def id(self) -> UUID:
        """Its id."""
        ...

    @property
    def racks(self) -> Iterable[Iterable[str]]:
        """Of each partition, in order, the racks of its replicas, each as often as it comes."""
        ...

    @property
    def partition_count(self) -> int:
        """How many partitions it has."""
        ...


class Topics(Protocol):
    """The topics of the cluster at this moment."""

    @property
    def version(self) -> int:
        """Grows with every change of the metadata: its offset."""
        ...

    @property
    def newest_version(self) -> int:
        """The version in which a topic came last, or a later one in which that was noticed."""
        ...

    def named(self, name: str) -> Topic | None:
        """The topic of that name."""
        ...

    def of_id(self, topic_id: UUID) -> Topic | None:
        """The topic of that id."""
        ...

    def names(self) -> Iterable[str]:
        """All of them, internal ones too."""
        ...


class NoTopics:
    """A cluster without any."""

    version = newest_version = 0

    def named(self, name: str) -> Topic | None:  # noqa: ARG002
        """None."""
        return None

    def of_id(self, topic_id: UUID) -> Topic | None:  # noqa: ARG002
        """None."""
        return None

    def names(self) -> Iterable[str]:
        """None."""
        return ()


def metadata_hash(names: Iterable[str], topics: Topics) -> int:
    """Kafka's hash (``Utils.computeGroupHash``) of the topics of these names that exist; 0 without any.

    XXH3 over what hash4j feeds it: numbers little-endian, a string as UTF-16LE units and their count.
    """
    known = {name: topic for name in names if (topic := topics.named(name)) is not None}
    if not known:
        return 0
    merged = b"".join(_LONG.pack(_topic_hash(known[name])) for name in sorted(known, key=utf16))
    return _signed(xxhash.xxh3_64_intdigest(merged))


def _topic_hash(topic: Topic) -> int:
    most, least = struct.unpack(">qq", topic.id.bytes)
    parts = [_MAGIC, _LONG.pack(most), _LONG.pack(least), _text(topic.name), _INT.pack(topic.partition_count)]
    for index, racks in enumerate(topic.racks):
        found = sorted(racks, key=utf16)
        parts.append(_INT.pack(index))
        for rack in found:
            parts += [_INT.pack(utf16_length(rack)), _text(rack)]
    return _signed(xxhash.xxh3_64_intdigest(b"".join(parts)))


def _text(text: str) -> bytes:
    raw = text.encode("utf-16-le", "surrogatepass")
    return raw + _INT.pack(len(raw) // 2)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def existing(names: Iterable[str], topics: Topics) -> Mapping[str, Topic]:
    """The topics of these names that exist."""
    return {name: topic for name in names if (topic := topics.named(name)) is not None}
