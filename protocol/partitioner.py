"""Chooses the partition of a record like Kafka's Java producer by murmur2 of its key; round robin without a key."""

from collections.abc import Iterator

_SEED, _M, _R = 0x9747B28C, 0x5BD1E995, 24  # of murmur2; the seed is that of Utils.murmur2
_MASK = 0xFFFFFFFF


def partition_for(key: bytes | None, partitions: int, turn: Iterator[int]) -> int:
    """Return a partition from 0 to ``partitions`` - 1."""
    if key is None:
        return next(turn) % partitions
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def murmur2(data: bytes) -> int:
    """Return the 32-bit hash, unsigned (Kafka: ``Utils.murmur2``)."""
    value = (_SEED ^ len(data)) & _MASK
    aligned = len(data) // 4 * 4  # murmur2 takes four bytes at a time
    for at in range(0, aligned, 4):
        part = int.from_bytes(data[at : at + 4], "little") * _M & _MASK
        part = (part ^ part >> _R) * _M & _MASK
        value = (value * _M & _MASK) ^ part
    if rest := data[aligned:]:
        value = (value ^ int.from_bytes(rest, "little")) * _M & _MASK
    # Murmur2's own shifts (org.apache.kafka.common.utils.Utils).
    value = (value ^ value >> 13) * _M & _MASK
    return value ^ value >> 15
