"""Decode requests and encode responses; for clients such as our tests, encode requests and decode responses too.

A frame is the bytes after the int32 size. Headers follow core A.1: header v2 where the request's version is flexible,
response header v1 likewise, except for ApiVersions, whose response header is always v0.
"""

import struct
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from protocol import version_adapters
from protocol.apis import ApiKey
from protocol.messages.versions import VERSIONS
from protocol.readers import MOST_ANSWERED, MOST_ELEMENTS, SURELY_SHORT, Budget, Reader, check_length
from protocol.types import Buffer
from protocol.uvarint import Unreadable, read_uvarint
from protocol.writers import Parts, Writer, write_string

_HEADER = struct.Struct(">hhi")
_SIZE = struct.Struct(">i")
_CLIENT_ID = struct.Struct(">h")


class BadFrame(Exception):
    """Frame that is not a valid request; its connection has to be closed."""


@dataclass(slots=True)
class RequestHeader:
    """Request header, version 1 or 2; a null client id is the empty string (core A.1.4)."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str = ""
    body_at: int = 0


@cache
def known_versions(key: int) -> tuple[int, int] | None:
    """Return the lowest and highest version that this library can read and write, or ``None`` for an unknown API."""
    versions = VERSIONS.get(key)
    return None if versions is None else (versions.low, versions.high)


@cache
def is_flexible(key: int, version: int) -> bool:
    """Whether a version uses compact types and tag sections (KIP-482); unknown higher versions count as the newest."""
    versions = VERSIONS.get(key)
    return versions is not None and min(max(version, versions.low), versions.high) >= versions.flexible


@cache
def _module(key: int) -> Any:
    """Return the generated module of an API, importing it on first use."""
    return import_module(f"protocol.messages.{VERSIONS[key].name}")


@cache
def message_class(key: int, suffix: str) -> type[Any]:
    """Return our class for an API's ``Request`` or ``Response``."""
    cls: type[Any] = getattr(_module(key), ApiKey(key).title + suffix)
    return cls


@cache
def request_reader(key: int, version: int) -> Reader:
    """Return the reader of a version's requests. Raises KeyError for an unknown version."""
    reader: Reader = _module(key).REQUEST_READERS[version]
    return reader


@cache
def response_reader(key: int, version: int) -> Reader:
    """Return the reader of a version's responses. Raises KeyError for an unknown version."""
    reader: Reader = _module(key).RESPONSE_READERS[version]
    return reader


@cache
def request_writer(key: int, version: int) -> Writer:
    """Return the writer of a version's requests. Raises KeyError for an unknown version."""
    writer: Writer = _module(key).REQUEST_WRITERS[version]
    return writer


@cache
def response_writer(key: int, version: int) -> Writer:
    """Return the writer of a version's responses. Raises KeyError for an unknown version."""
    writer: Writer = _module(key).RESPONSE_WRITERS[version]
    return writer


def _skip_tags(frame: Buffer, at: int) -> int:
    """Return the position after a tag section."""
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
    """Decode the header of a request frame.

    Raises:
        BadFrame: the header cannot be read (core A.2.1), or the API key, and so the header version, is unknown.
    """
    if len(frame) < 10:
        raise BadFrame(f"a frame of {len(frame)} bytes is too short for a request header")
    key, version, correlation_id = _HEADER.unpack_from(frame)
    if known_versions(key) is None:
        raise BadFrame(f"unknown api key {key}")
    (size,) = _CLIENT_ID.unpack_from(frame, 8)
    at = 10 + max(size, 0)
    if at > len(frame):
        raise BadFrame("the client id ends outside the frame")
    client_id = str(frame[10:at], "utf-8", "replace")  # as Java reads it
    if size > SURELY_SHORT:
        try:
            check_length(client_id)
        except Unreadable as error:
            raise BadFrame(f"the client id: {error}") from error
    if is_flexible(key, version):
        try:
            at = _skip_tags(frame, at) if frame[at] else at + 1
        except (Unreadable, IndexError) as cause:
            raise BadFrame(f"the header's tags: {cause}") from cause
    return RequestHeader(key, version, correlation_id, client_id, at)


def decode_request(frame: bytes | bytearray, header: RequestHeader) -> Any:
    """Decode the body of a request into the API's newest shape. Bytes after it are ignored (core A.2.5).

    Raises:
        BadFrame: the body does not follow the schema of its version (core A.2.4).
    """
    try:
        request, _ = request_reader(header.api_key, header.api_version)(frame, header.body_at, Budget())
    except (IndexError, ValueError, struct.error) as error:  # Unreadable is a ValueError
        raise BadFrame(f"{ApiKey(header.api_key).title} v{header.api_version}: {error}") from error
    return version_adapters.newest_request(header.api_key, header.api_version, request)


def encode_response(key: int, version: int, correlation_id: int, response: Any) -> Parts:
    """Encode a response with its size and header, as parts to be written in order."""
    return encode_response_as_sent(
        key, version, correlation_id, version_adapters.older_response(key, version, response)
    )


def encode_response_body(key: int, version: int, response: Any) -> Parts:
    """Encode a response without size and header, for callers that need its size first."""
    parts: Parts = []
    response_writer(key, version)(parts, version_adapters.older_response(key, version, response))
    return parts


def with_response_header(key: int, version: int, correlation_id: int, body: Parts) -> Parts:
    """Put size and header before an encoded body, which makes the result of :func:`encode_response`."""
    flexible = is_flexible(key, version) and key != ApiKey.API_VERSIONS
    head = _SIZE.pack(correlation_id) + b"\0" if flexible else _SIZE.pack(correlation_id)
    return [_SIZE.pack(len(head) + sum(map(len, body))), head, *body]


# --- the client's side -----------------------------------------------------------------------------------------------


def encode_request(key: int, version: int, correlation_id: int, client_id: str | None, request: Any) -> bytes:
    """Encode a request with its size and header, from our newest shape."""
    request = version_adapters.older_request(key, version, request)
    head: Parts = [_HEADER.pack(key, version, correlation_id)]
    if client_id is None:
        head.append(b"\xff\xff")
    else:
        write_string(head, client_id)
    if is_flexible(key, version):
        head.append(b"\0")
    request_writer(key, version)(head, request)
    frame = b"".join(head)
    return _SIZE.pack(len(frame)) + frame


def decode_response(key: int, version: int, frame: Buffer) -> tuple[int, Any]:
    """Decode a response frame; return its correlation id, and its body in the API's newest shape."""
    correlation_id, response = decode_response_as_sent(key, version, frame)
    return correlation_id, version_adapters.newest_response(key, version, response)


# --- responses in the shape of their version, for the proxy ----------------------------------------------------------


def decode_response_as_sent(key: int, version: int, frame: Buffer) -> tuple[int, Any]:
    """Decode a response frame like :func:`decode_response`, but keep the fields of its version.

    Raises:
        IndexError, ValueError, struct.error: the frame does not follow the schema of its version.
    """
    (correlation_id,) = _SIZE.unpack_from(frame)
    at = 4
    if is_flexible(key, version) and key != ApiKey.API_VERSIONS:
        at = _skip_tags(frame, at)
    response, _ = response_reader(key, version)(frame, at, Budget(MOST_ANSWERED))
    return correlation_id, response


def encode_response_as_sent(key: int, version: int, correlation_id: int, response: Any) -> Parts:
    """Encode a response that was decoded by :func:`decode_response_as_sent`, with size and header."""
    parts: Parts = [b""]
    flexible = is_flexible(key, version) and key != ApiKey.API_VERSIONS
    head = _SIZE.pack(correlation_id) + b"\0" if flexible else _SIZE.pack(correlation_id)
    parts.append(head)
    response_writer(key, version)(parts, response)
    parts[0] = _SIZE.pack(sum(map(len, parts)))
    return parts
