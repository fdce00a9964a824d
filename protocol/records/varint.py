"""Zig-zag varints: how a record writes its lengths and deltas (Kafka: ByteUtils)."""

from protocol.records.errors import MalformedRecordsError

VARINT_MAX_BYTES = 5
VARLONG_MAX_BYTES = 10
_INT32 = 2**32 - 1
_INT64 = 2**64 - 1


def read_varint(data: bytes | bytearray, position: int, max_bytes: int = VARINT_MAX_BYTES) -> tuple[int, int]:
    """Read a number; return it and the position after it. Raises MalformedRecordsError past the end or `max_bytes`."""
    value = shift = 0
    stop = position + max_bytes
    try:
        while True:
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                value &= _INT32 if max_bytes == VARINT_MAX_BYTES else _INT64  # Java drops what does not fit
                return (value >> 1) ^ -(value & 1), position
            if position == stop:
                raise MalformedRecordsError(f"a varint of more than {max_bytes} bytes")
            shift += 7
    except IndexError:
        raise MalformedRecordsError("a varint cut short") from None


def write_varint(output: bytearray, value: int) -> None:
    """Append `value` (an int32 or an int64) to `output`."""
    value = (value << 1) ^ (value >> 63)
    while value > 0x7F:
        output.append(value & 0x7F | 0x80)
        value >>= 7
    output.append(value)


def wrap_int64(value: int) -> int:
    """Return `value` with the overflow of a Java long."""
    return ((value + 2**63) & _INT64) - 2**63
