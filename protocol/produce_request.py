"""Produce requests read without copying their records.

The frame of a Produce request is the broker's largest input. Its few fields are read here by hand, and each partition's
records are a writable slice of the frame: the log stamps offsets into them and keeps them as they are. A test holds the
result equal to what kio reads.
"""

import struct

from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.readers import Budget, Take, read_count, read_string, skip_tags, uuid_or_none
from protocol.uvarint import Unreadable, read_uvarint

_ACKS_AND_TIMEOUT = struct.Struct(">hi").unpack_from
_INT32 = struct.Struct(">i").unpack_from
_INDEX_AND_SIZE = struct.Struct(">ii").unpack_from
_FIRST_FLEXIBLE = 9  # KIP-482
_FIRST_WITH_TOPIC_ID = 13  # KIP-516
_UUID_BYTES = 16
_FIRST_WITH_TRANSACTIONS = 3  # KIP-98


def read_produce_request(frame: bytes | bytearray, at: int, version: int) -> ProduceRequest:
    """The request whose body starts at ``at``; records are slices of ``frame``.

    Raises:
        Unreadable, struct.error, IndexError: the body does not follow its schema.
    """
    take = Budget().take
    flexible, by_id, view = version >= _FIRST_FLEXIBLE, version >= _FIRST_WITH_TOPIC_ID, memoryview(frame)
    transactional_id = None
    if version >= _FIRST_WITH_TRANSACTIONS:
        transactional_id, at = read_string(frame, at, flexible, nullable=True)
    acks, timeout_ms = _ACKS_AND_TIMEOUT(frame, at)
    count, at = read_count(frame, at + 6, flexible, nullable=False, take=take)
    topics = []
    for _ in range(count):
        name, topic_id = "", None
        if by_id:
            raw, at = bytes(_slice(view, at, _UUID_BYTES)), at + _UUID_BYTES
            topic_id = uuid_or_none(raw)
        else:
            text, at = read_string(frame, at, flexible, nullable=False)
            name = text or ""
        partitions, at = _partitions(frame, view, at, flexible, take)
        topics.append(TopicProduceData(name, partitions, topic_id))
        at = skip_tags(frame, at, take) if flexible else at
    if flexible:
        skip_tags(frame, at, take)
    return ProduceRequest(transactional_id, acks, timeout_ms, topics)


def _partitions(
    frame: bytes | bytearray, view: memoryview, at: int, flexible: bool, take: Take
) -> tuple[list[PartitionProduceData], int]:
    count, at = read_count(frame, at, flexible, nullable=False, take=take)
    partitions = []
    for _ in range(count):
        if flexible:
            (index,) = _INT32(frame, at)
            size, at = read_uvarint(frame, at + 4)
            size -= 1
        else:
            index, size = _INDEX_AND_SIZE(frame, at)
            at += 8
        records = None
        if size >= 0:
            records = _slice(view, at, size)
            at += size
        partitions.append(PartitionProduceData(index, records))
        at = skip_tags(frame, at, take) if flexible else at
    return partitions, at


def _slice(view: memoryview, at: int, size: int) -> memoryview:
    stop = at + size
    if stop > len(view):
        raise Unreadable(f"{size} bytes announced, {len(view) - at} left")
    return view[at:stop]
