"""Subscriptions and assignments of the embedded consumer protocol, in a classic group's opaque bytes.

Kafka's ``ConsumerProtocolSubscription`` and ``ConsumerProtocolAssignment``, versions 0 to 3; later ones only append
(groups A.1, C.10). kio has both schemas, and a test compares this module with them. The bytes are parsed here because
malformed bytes are not an error: a client may put anything there.
"""

import struct
from collections.abc import Iterable, Mapping
from typing import NamedTuple

CONSUMER_PROTOCOL_TYPE = "consumer"

_INT16, _INT32 = struct.Struct(">h"), struct.Struct(">i")
_OWNED_SINCE, _GENERATION_SINCE, _RACK_SINCE = 1, 2, 3  # versions of the subscription


class Subscription(NamedTuple):
    """Subscription of a member; ``owned`` are the partitions that it owns, by topic."""

    version: int
    topics: tuple[str, ...]
    owned: Mapping[str, tuple[int, ...]]
    rack_id: str | None


class Assigned(NamedTuple):
    """Assignment of a member; ``custom``: whether its assignor added user data."""

    partitions: Mapping[str, tuple[int, ...]]
    custom: bool


class _Reader:
    """Reads from bytes; raises struct.error or ValueError past their end."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def number(self, of: struct.Struct) -> int:
        """Return the next number."""
        (value,) = of.unpack_from(self._data, self._at)
        self._at += of.size
        number: int = value
        return number

    def text(self) -> str | None:
        """Return the next string, perhaps null."""
        raw = self._slice(self.number(_INT16))
        return None if raw is None else raw.decode()

    def name(self) -> str:
        """Return the next string."""
        text = self.text()
        if text is None:
            raise ValueError("a name that is null")
        return text

    def blob(self) -> bytes | None:
        """Return the next bytes, perhaps null."""
        return self._slice(self.number(_INT32))

    def many(self) -> range:
        """Return the indexes of the next array, after its length."""
        count = self.number(_INT32)
        if count < 0 or count > len(self._data):
            raise ValueError("an array of no length")
        return range(count)

    def _slice(self, size: int) -> bytes | None:
        if size < 0:
            return None
        if size > len(self._data) - self._at:
            raise ValueError("longer than what is left")
        self._at += size
        return self._data[self._at - size : self._at]

    def partitions(self) -> dict[str, tuple[int, ...]]:
        """Return the next array of topics with their partitions."""
        return {self.name(): tuple(self.number(_INT32) for _ in self.many()) for _ in self.many()}


def subscribed_topics(data: bytes) -> frozenset[str] | None:
    """Return the topics of a subscription, or ``None`` if the bytes are not one.

    Only the fields of version 0 are read, which are a prefix of every other version.
    """
    reader = _Reader(data)
    try:
        reader.number(_INT16)
        topics = frozenset([reader.name() for _ in reader.many()])
        reader.blob()
    except (struct.error, ValueError):
        return None
    return topics


def read_subscription(data: bytes) -> Subscription | None:
    """Parse a subscription; ``None`` if the bytes are not one."""
    reader = _Reader(data)
    try:
        version = reader.number(_INT16)
        topics = tuple(reader.name() for _ in reader.many())
        reader.blob()
        owned = reader.partitions() if version >= _OWNED_SINCE else {}
        if version >= _GENERATION_SINCE:
            reader.number(_INT32)
        rack_id = reader.text() if version >= _RACK_SINCE else None
    except (struct.error, ValueError):
        return None
    return Subscription(version, topics, owned, rack_id) if version >= 0 else None


def read_assignment(data: bytes) -> Assigned | None:
    """Parse an assignment; ``None`` if the bytes are not one. Empty bytes are an empty assignment."""
    if not data:
        return Assigned({}, custom=False)
    reader = _Reader(data)
    try:
        reader.number(_INT16)
        return Assigned(reader.partitions(), custom=bool(reader.blob()))
    except (struct.error, ValueError):
        return None


def write_assignment(partitions: Mapping[str, Iterable[int]], version: int) -> bytes:
    """Serialize an assignment without user data."""
    out = [_INT16.pack(version), _INT32.pack(len(partitions))]
    for name, indexes in partitions.items():
        raw, ordered = name.encode(), sorted(indexes)
        out += [_INT16.pack(len(raw)), raw, _INT32.pack(len(ordered)), *map(_INT32.pack, ordered)]
    return b"".join([*out, _INT32.pack(-1)])
