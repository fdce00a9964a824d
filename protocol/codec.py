"""Frames to requests, responses to frames; and, for clients such as our tests, the other way round.

A frame is what follows the int32 size. Headers follow core A.1: header v2 where the request's version is flexible,
response header v1 likewise, except for ApiVersions, whose response header is always v0.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from kio.schema.index import api_key_map, schema_name_map

from protocol import reshape
from protocol.apis import ApiKey
from protocol.compiled import Parts, put_string, writer
from protocol.produce_request import read_produce_request
from protocol.reading import MOST_ELEMENTS, Unreadable, read_uvarint, reader
from protocol.removed import request_schema, response_schema, versions_of
from protocol.types import Buffer

_HEADER = struct.Struct(">hhi")
_SIZE = struct.Struct(">i")
_CLIENT_ID = struct.Struct(">h")


class BadFrame(Exception):
    """Bytes that are no request this side can read; the connection that sent them is of no more use."""


@dataclass(slots=True)
class RequestHeader:
    """The header of a request, either version; a null client id is the empty string (core A.1.4)."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str = ""
    body_at: int = 0


def known_versions(key: int) -> tuple[int, int] | None:
    """Lowest and highest version that this library can read and write, or ``None`` for an unknown API."""
    versions = versions_of(key)
    return (versions[0], versions[-1]) if versions else None


@cache
def is_flexible(key: int, version: int) -> bool:
    """Whether that version uses compact types and tag sections (KIP-482); versions above the known ones do as those."""
    known = known_versions(key)
    if known is None:
        return False
    low, high = known
    return bool(request_schema(key, min(max(version, low), high)).__flexible__)


@cache
def message_class(key: int, suffix: str) -> type[Any]:
    """Our class for an API's ``Request`` or ``Response``."""
    name = api_key_map[key]
    module = import_module(f"protocol.messages.{name}")
    title = request_schema(key, max(schema_name_map[name])).__name__.removesuffix("Request")
    found: type[Any] = getattr(module, title + suffix)
    return found


@cache
def _request_reader(key: int, version: int) -> Callable[[Buffer, int], tuple[Any, int]]:
    return reader(request_schema(key, version), message_class(key, "Request"))


@cache
def _response_writer(key: int, version: int) -> Callable[[Parts, Any], None]:
    return writer(response_schema(key, version))


def _skip_tags(frame: Buffer, at: int) -> int:
    """The position after a tag section."""
    count, at = read_uvarint(frame, at)
    if count > MOST_ELEMENTS:
        raise Unreadable(f"{count} tags")
    for _ in range(count):
        _, at = read_uvarint(frame, at)
        size, at = read_uvarint(frame, at)
        at += size
        if at > len(frame):
            raise Unreadable("a tag section ends outside the frame")
    return at


def decode_header(frame: bytes | bytearray) -> RequestHeader:
    """The header of a request frame.

    Raises:
        BadFrame: the header cannot be read (core A.2 #1). An unknown API key raises it too: no header shape is known.
    """
    if len(frame) < 10:
        raise BadFrame(f"a frame of {len(frame)} bytes has no room for a request header")
    key, version, correlation_id = _HEADER.unpack_from(frame)
    if key not in api_key_map:
        raise BadFrame(f"unknown api key {key}")
    (size,) = _CLIENT_ID.unpack_from(frame, 8)
    at = 10 + max(size, 0)
    if at > len(frame):
        raise BadFrame("the client id ends outside the frame")
    client_id = str(frame[10:at], "utf-8", "replace")  # as Java reads it
    if is_flexible(key, version):
        try:
            at = _skip_tags(frame, at) if frame[at] else at + 1
        except (Unreadable, IndexError) as error:
            raise BadFrame(f"the header's tags: {error}") from error
    return RequestHeader(key, version, correlation_id, client_id, at)


def decode_request(frame: bytes | bytearray, header: RequestHeader) -> Any:
    """The body of a request, in the API's newest shape. Bytes after it are ignored (core A.2 #5).

    Raises:
        BadFrame: the body does not follow the schema of its version (core A.2 #4).
    """
    try:
        if header.api_key == ApiKey.PRODUCE:
            return read_produce_request(frame, header.body_at, header.api_version)
        request, _ = _request_reader(header.api_key, header.api_version)(frame, header.body_at)
    except (Unreadable, IndexError, ValueError, struct.error) as error:
        raise BadFrame(f"{ApiKey(header.api_key).title} v{header.api_version}: {error}") from error
    return reshape.newest_request(header.api_key, header.api_version, request)


def encode_response(key: int, version: int, correlation_id: int, response: Any) -> Parts:
    """A response with its size and header, as parts to be written in order."""
    response = reshape.older_response(key, version, response)
    parts: Parts = [b""]
    flexible = is_flexible(key, version) and key != ApiKey.API_VERSIONS
    head = _SIZE.pack(correlation_id) + b"\0" if flexible else _SIZE.pack(correlation_id)
    parts.append(head)
    _response_writer(key, version)(parts, response)
    parts[0] = _SIZE.pack(sum(map(len, parts)))
    return parts


# --- the client's side -----------------------------------------------------------------------------------------------


def encode_request(key: int, version: int, correlation_id: int, client_id: str | None, request: Any) -> bytes:
    """A request with its size and header, from our newest shape."""
    request = reshape.older_request(key, version, request)
    head: Parts = [_HEADER.pack(key, version, correlation_id)]
    if client_id is None:
        head.append(b"\xff\xff")
    else:
        put_string(head, client_id, flexible=False)
    if is_flexible(key, version):
        head.append(b"\0")
    writer(request_schema(key, version))(head, request)
    frame = b"".join(head)
    return _SIZE.pack(len(frame)) + frame


def decode_response(key: int, version: int, frame: bytes) -> tuple[int, Any]:
    """Correlation id and body of a response frame, in the API's newest shape."""
    (correlation_id,) = _SIZE.unpack_from(frame)
    at = 4
    if is_flexible(key, version) and key != ApiKey.API_VERSIONS:
        at = _skip_tags(frame, at)
    response, _ = reader(response_schema(key, version), message_class(key, "Response"))(frame, at)
    return correlation_id, reshape.newest_response(key, version, response)
