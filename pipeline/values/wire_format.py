"""How serializers of a schema registry identify the schema of a key or value.

Before the data: a magic byte 0 and the schema id in four bytes, or a magic byte 1 and its GUID in sixteen. Newer
serializers write the same into a header instead (`HeaderSchemaIdSerializer`), and leave the data unchanged. With
Protobuf, the indexes of the message within its schema follow.
"""

import struct
from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

HEADERS: Final = {"key": "__key_schema_id", "value": "__value_schema_id"}
_ID: Final = 0
_GUID: Final = 1
_ID_END: Final = 5  # a magic byte and an int32
_GUID_END: Final = 17  # a magic byte and 16 bytes


class Framed(NamedTuple):
    """A key or value with the id of its schema."""

    schema_id: int | None
    guid: str | None
    rest: bytes
    """The bytes that follow; with Protobuf they begin with the message indexes."""


class FormatError(ValueError):
    """Data that do not match their schema; the message is for the user."""


def framed(data: bytes, headers: Sequence[dict[str, Any]] | None, side: str) -> Framed | None:
    """Return the schema id of a key or value (`side`) and the data; None: the data are not in this format.

    A header takes precedence over the start of the data, and the first header with its name over others, as in
    Confluent's deserializers. A GUID is expected only in a header: data may begin with a byte 1 for other reasons.
    """
    name = HEADERS[side]
    for header in headers or ():
        if header["key"] == name and header["value"] is not None:
            frame = _named(header["value"])
            if frame is None:
                break
            # Protobuf's indexes precede the data, wherever the id is.
            return frame._replace(rest=frame.rest + data)
    return _named(data) if data[:1] == b"\0" else None


def _named(data: bytes) -> Framed | None:
    if len(data) >= _ID_END and data[0] == _ID:
        return Framed(struct.unpack_from(">I", data, 1)[0], None, data[_ID_END:])
    if len(data) >= _GUID_END and data[0] == _GUID:
        return Framed(None, str(UUID(bytes=data[1:_GUID_END])), data[_GUID_END:])
    return None


def message_indexes(data: bytes) -> tuple[list[int], bytes]:
    """Return the path to a Protobuf message within its schema, and the message.

    Raises:
        FormatError: the indexes are invalid.
    """
    count, at = _varint(data, 0)
    if count < 0 or count > len(data):
        raise FormatError("the indexes of its message are invalid")
    if count == 0:
        return [0], data[at:]
    indexes = []
    for _ in range(count):
        index, at = _varint(data, at)
        indexes.append(index)
    return indexes, data[at:]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 35:  # five bytes of seven bits: an INT32 has no more
        value |= (data[at] & 0x7F) << shift
        at += 1
        if not data[at - 1] & 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7
    raise FormatError("the indexes of its message are invalid")
