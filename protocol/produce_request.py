"""Produce requests read without copying their records.

The frame of a Produce request is the broker's largest input. Its few fields are read here by hand, and each partition's
records are a writable slice of the frame: the log stamps offsets into them and keeps them as they are. A test holds the
result equal to what kio reads.
"""

import struct
from uuid import UUID

from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.reading import Budget, Unreadable
from protocol.types import ZERO_UUID

_INT16 = struct.Struct(">h").unpack_from
_INT32 = struct.Struct(">i").unpack_from
_FIRST_FLEXIBLE = 9  # KIP-482
_FIRST_WITH_TOPIC_ID = 13  # KIP-516


class _Cursor:
    """A position in the frame; each method reads one field."""

    def __init__(self, frame: memoryview, at: int, flexible: bool) -> None:
        self.frame, self.at, self.flexible, self.end = frame, at, flexible, len(frame)
        self.budget = Budget()

    def uvarint(self) -> int:
        value = shift = 0
        while True:
            if self.at >= self.end or shift > 28:
                raise Unreadable("a variable-length number is cut off or too long")
            byte = self.frame[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def int16(self) -> int:
        (value,) = _INT16(self.frame, self.at)
        self.at += 2
        return int(value)

    def int32(self) -> int:
        (value,) = _INT32(self.frame, self.at)
        self.at += 4
        return int(value)

    def slice(self, size: int) -> memoryview:
        stop = self.at + size
        if stop > self.end:
            raise Unreadable(f"{size} bytes announced, {self.end - self.at} left")
        piece = self.frame[self.at : stop]
        self.at = stop
        return piece

    def nullable_string(self) -> str | None:
        size = self.uvarint() - 1 if self.flexible else self.int16()
        if size > 0x7FFF:
            raise Unreadable(f"a string of {size} bytes")
        return None if size < 0 else str(self.slice(size), "utf-8", "replace")

    def string(self) -> str:
        text = self.nullable_string()
        if text is None:
            raise Unreadable("null where a string is required")
        return text

    def count(self) -> int:
        """An array's length; every element takes at least one byte."""
        count = self.uvarint() - 1 if self.flexible else self.int32()
        if count < 0 or count > self.end - self.at:
            raise Unreadable(f"an array of {count} elements")
        self.budget.take(count)
        return count

    def records(self) -> memoryview | None:
        size = self.uvarint() - 1 if self.flexible else self.int32()
        return None if size < 0 else self.slice(size)

    def uuid(self) -> UUID | None:
        value = UUID(bytes=bytes(self.slice(16)))
        return None if value == ZERO_UUID else value

    def skip_tags(self) -> None:
        if self.flexible and (tags := self.uvarint()):
            self.budget.take(tags)
            for _ in range(tags):
                self.uvarint()
                self.slice(self.uvarint())


def read_produce_request(frame: memoryview, at: int, version: int) -> ProduceRequest:
    """The request whose body starts at ``at``; records are slices of ``frame``.

    Raises:
        Unreadable, struct.error: the body does not follow its schema.
    """
    cursor = _Cursor(frame, at, version >= _FIRST_FLEXIBLE)
    transactional_id, acks, timeout_ms = cursor.nullable_string(), cursor.int16(), cursor.int32()
    by_id = version >= _FIRST_WITH_TOPIC_ID
    topics = []
    for _ in range(cursor.count()):
        name, topic_id = ("", cursor.uuid()) if by_id else (cursor.string(), None)
        partitions = []
        for _ in range(cursor.count()):
            partitions.append(PartitionProduceData(cursor.int32(), cursor.records()))
            cursor.skip_tags()
        topics.append(TopicProduceData(name, partitions, topic_id))
        cursor.skip_tags()
    cursor.skip_tags()
    return ProduceRequest(transactional_id, acks, timeout_ms, topics)
