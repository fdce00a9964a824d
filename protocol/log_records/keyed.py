"""Records of ``__consumer_offsets`` whose value is a flexible struct of version 0 (transactions F.4).

A key is an int16 kind, the group id and, where a group has several records of a kind, a name: mostly a member id. A
null value is a tombstone. Consumer and streams groups have such records.
"""

import struct
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from protocol.log_records.flexible import shape_of
from protocol.records.errors import MalformedRecordsError

_INT16 = struct.Struct(">h")
_VERSION = 0


class Entry(NamedTuple):
    """A decoded record; ``name`` is "" where its kind has none, ``value`` is ``None`` in a tombstone."""

    kind: int
    group_id: str
    name: str
    value: Any


class KeyedRecords:
    """The record kinds of one type of group: ``values`` maps a kind to the class of its value."""

    def __init__(self, values: Mapping[Any, Any], named: Collection[Any]) -> None:
        self._values = {int(kind): cls for kind, cls in values.items()}
        self._named = frozenset(int(kind) for kind in named)
        self.kinds = {cls: kind for kind, cls in values.items()}

    def encode(self, kind: int, group_id: str, name: str, value: Any) -> tuple[bytes, bytes | None]:
        """Return key and value of a record; the value of a tombstone is ``None``."""
        key = _INT16.pack(kind) + _string(group_id)
        if kind in self._named:
            key += _string(name)
        if value is None:
            return key, None
        parts = [_INT16.pack(_VERSION)]
        shape_of(self._values[kind], _VERSION).write(parts, value)
        return key, b"".join(parts)

    def knows(self, kind: int) -> bool:
        """Whether this type of group has records of that kind."""
        return kind in self._values

    def decode(self, kind: int, key: bytes, value: bytes | None) -> Entry | None:
        """Decode a record from its key and value; ``None`` if the kind or version is unknown.

        Raises:
            MalformedRecordsError, struct.error, UnicodeDecodeError, IndexError: the bytes do not follow the format.
        """
        if kind not in self._values:
            return None
        group_id, at = _read_string(key, _INT16.size)
        name, _ = _read_string(key, at) if kind in self._named else ("", at)
        if value is None:
            return Entry(kind, group_id, name, None)
        if _INT16.unpack_from(value)[0] != _VERSION:
            return None
        read, _ = shape_of(self._values[kind], _VERSION).read(value, _INT16.size)
        return Entry(kind, group_id, name, read)


def _string(text: str) -> bytes:
    raw = text.encode()
    return _INT16.pack(len(raw)) + raw


def _read_string(data: bytes, at: int) -> tuple[str, int]:
    (size,) = _INT16.unpack_from(data, at)
    at += _INT16.size
    if not 0 <= size <= len(data) - at:
        raise MalformedRecordsError("a string longer than what is left")
    return data[at : at + size].decode(), at + size
