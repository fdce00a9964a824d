"""Cut a byte stream into frames, decode requests and encode responses, sans I/O; a client's side of it too.

A frame is the bytes after the int32 size. Headers follow core A.1: header v2 where the request's version is flexible,
response header v1 likewise, except for ApiVersions, whose response header is always v0.
"""

import re
import struct
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Final

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.versions import VERSIONS
from protocol.readers import MOST_ANSWERED, MOST_ELEMENTS, SURELY_SHORT, Budget, Reader, check_length
from protocol.types import Buffer, Message, module_of
from protocol.uvarint import Unreadable, read_uvarint
from protocol.version_adapters import NEWEST_REQUEST, NEWEST_RESPONSE, OLDER_REQUEST, OLDER_RESPONSE
from protocol.writers import Parts, Writer, write_string

_HEADER: Final = struct.Struct(">hhi")
_SIZE: Final = struct.Struct(">i")
_CLIENT_ID: Final = struct.Struct(">h")


class BadFrame(Exception):
    """Frame that is not a valid request; its connection has to be closed."""


class RequestHeader:
    """Request header, version 1 or 2; a null client id is the empty string (core A.1.4)."""

    __slots__ = ("api_key", "api_version", "body_at", "client_id", "correlation_id")

    def __init__(
        self, api_key: int, api_version: int, correlation_id: int, client_id: str = "", body_at: int = 0
    ) -> None:
        self.api_key, self.api_version, self.correlation_id = api_key, api_version, correlation_id
        self.client_id, self.body_at = client_id, body_at


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
    # Key, version, correlation id and the length of the client id: 2 + 2 + 4 + 2 bytes (core A.1.4).
    if len(frame) < 10:
        raise BadFrame(f"a frame of {len(frame)} bytes is too short for a request header")
    key, version, correlation_id = _HEADER.unpack_from(frame)
    if known_versions(key) is None:
        raise BadFrame(f"unknown api key {key}")
    (size,) = _CLIENT_ID.unpack_from(frame, 8)
    at = 10 + max(size, 0)  # after key, version, correlation id and the size of the client id
    if at > len(frame):
        raise BadFrame("the client id ends outside the frame")
    client_id = frame[10:at].decode("utf-8", "replace")  # as Java reads it
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
    if adapt := NEWEST_REQUEST.get(header.api_key):
        adapt(header.api_version, request)
    return request


def encode_response(key: int, version: int, correlation_id: int, response: Any) -> Parts:
    """Encode a response with its size and header, as parts to be written in order."""
    if adapt := OLDER_RESPONSE.get(key):
        adapt(version, response)
    return encode_response_as_sent(key, version, correlation_id, response)


def encode_response_body(key: int, version: int, response: Any) -> Parts:
    """Encode a response without size and header, for callers that need its size first."""
    if adapt := OLDER_RESPONSE.get(key):
        adapt(version, response)
    parts: Parts = []
    response_writer(key, version)(parts, response)
    return parts


def with_response_header(key: int, version: int, correlation_id: int, body: Parts) -> Parts:
    """Put size and header before an encoded body, which makes the result of :func:`encode_response`."""
    # Quirk: ApiVersions never has tags here, so that a client can read an error in any version (core A.1.6).
    flexible = is_flexible(key, version) and key != ApiKey.API_VERSIONS
    head = _SIZE.pack(correlation_id) + b"\0" if flexible else _SIZE.pack(correlation_id)
    return [_SIZE.pack(len(head) + sum(map(len, body))), head, *body]


# --- the client's side -----------------------------------------------------------------------------------------------


def encode_request(key: int, version: int, correlation_id: int, client_id: str | None, request: Any) -> bytes:
    """Encode a request with its size and header, from our newest shape."""
    if adapt := OLDER_REQUEST.get(key):
        adapt(version, request)
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
    if adapt := NEWEST_RESPONSE.get(key):
        adapt(version, response)
    return correlation_id, response


# --- responses in the shape of their version, for the proxy ----------------------------------------------------------


def decode_response_as_sent(key: int, version: int, frame: Buffer) -> tuple[int, Any]:
    """Decode a response frame like :func:`decode_response`, but keep the fields of its version.

    Raises:
        IndexError, ValueError, struct.error: the frame does not follow the schema of its version.
    """
    (correlation_id,) = _SIZE.unpack_from(frame)
    at = 4  # after the correlation id
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


# --- frames in a byte stream -----------------------------------------------------------------------------------------
#
# The transport asks for a buffer and reports how many bytes it wrote. Small frames are cut out of a scratch buffer, so
# that many pipelined requests cost one read; all connections of a loop share it, because a transport fills it and
# reports in one step. A large frame gets a buffer of its own into which the transport reads directly: joining small
# reads would cost a megabyte batch three copies. The size that a peer announces is not trusted: a frame's buffer grows
# with the bytes that have really arrived.

SCRATCH_BYTES: Final = 256 * 1024  # what one read of a socket brings at most: as in asyncio's own transports (max_size)
_LARGE_BYTES: Final = 16 * 1024  # a frame under way gets its own buffer from here on; arbitrary: less is cheap to copy
_FIRST_BYTES: Final = 2 * 1024 * 1024
"""A frame announced larger starts with this and doubles: ours, twice the largest batch of a topic by default."""
_HTTP: Final = frozenset((b"GET ", b"POST", b"PUT ", b"HEAD", b"DELE", b"OPTI", b"PATC", b"CONN", b"PRI "))
_TLS_HANDSHAKE: Final = b"\x16\x03"


class BadFrameSize(Exception):
    """Frame size that is negative or above the limit (core A.1.2).

    The reader cannot be used any more. ``frames`` are the complete frames that the same read brought before it.
    """

    def __init__(self, size: int, limit: int, frames: list[bytearray]) -> None:
        super().__init__(_reason(size, limit))
        self.frames = frames


class FrameReader:
    """Cuts a stream into frames.

    ``limit`` may be changed at any time (SASL listeners start with a smaller one), and so may ``first_bytes``, the most
    that a large frame gets before it has arrived. ``scratch`` may be shared by readers whose transports call
    :meth:`buffer` and :meth:`received` in one step.
    """

    def __init__(self, limit: int, scratch: bytearray | None = None) -> None:
        self.limit = limit
        self.first_bytes = _FIRST_BYTES
        self._scratch = bytearray(SCRATCH_BYTES) if scratch is None else scratch
        self._rest = bytearray()  # the beginning of a small frame, or of a length
        self._frame: bytearray | None = None  # a large frame under way
        self._frame_size = 0
        self._filled = 0
        self.pending_bytes = 0
        """Bytes received of an incomplete frame, including its length."""

    def buffer(self) -> memoryview:
        """Return the buffer for the next bytes; never empty."""
        if self._frame is not None:
            return memoryview(self._frame)[self._filled :]
        return memoryview(self._scratch)

    def received(self, count: int) -> list[bytearray]:
        """Accept ``count`` bytes written to :meth:`buffer`; return the frames that are now complete, in order.

        Raises:
            BadFrameSize: the next frame's size is not allowed.
        """
        if self._frame is not None:
            self._filled += count
            return self._grow()
        if self._rest:
            rest, self._rest = self._rest, bytearray()
            rest += memoryview(self._scratch)[:count]
            return self._cut(rest, len(rest))
        return self._cut(self._scratch, count)

    def _grow(self) -> list[bytearray]:
        frame = self._frame
        assert frame is not None
        self.pending_bytes = self._filled + 4  # with the size field
        if self._filled < len(frame):
            return []
        if self._filled < self._frame_size:  # the peer really sends what it announced: double the buffer
            larger = bytearray(min(self._frame_size, 2 * len(frame)))
            larger[: self._filled] = frame
            self._frame = larger
            return []
        self._frame, self._filled = None, 0
        self.pending_bytes = 0
        return [frame]

    def _cut(self, source: bytearray, end: int) -> list[bytearray]:
        frames: list[bytearray] = []
        at = 0
        while end - at >= 4:  # a size
            (size,) = _SIZE.unpack_from(source, at)
            if size < 0 or size > self.limit:
                self.pending_bytes = 0
                raise BadFrameSize(size, self.limit, frames)
            start = at + 4
            if end - start < size:
                if size >= _LARGE_BYTES:
                    self._frame = bytearray(min(size, max(self.first_bytes, 2 * (end - start))))
                    with memoryview(self._frame) as target, memoryview(source) as read:
                        target[: end - start] = read[start:end]
                    self._frame_size, self._filled = size, end - start
                    self.pending_bytes = self._filled + 4  # with the size field
                    return frames
                break
            frames.append(source[start : start + size])
            at = start + size
        if at < end:
            self._rest = source[at:end]
        self.pending_bytes = end - at
        return frames

    @property
    def held_bytes(self) -> int:
        """Memory used by an incomplete frame, in bytes."""
        return len(self._rest) if self._frame is None else len(self._frame)


def _reason(size: int, limit: int) -> str:
    """Explain a bad frame size; name the protocol that the bytes look like, if any."""
    first = _SIZE.pack(size)
    if first in _HTTP:
        return "HTTP on a Kafka port"
    if first[:2] == _TLS_HANDSHAKE:
        return "TLS on a plaintext listener"
    return f"a frame of {size} bytes; at most {limit} are allowed"


# --- the error codes in a response -----------------------------------------------------------------------------------
#
# They are collected for every response, for the metrics and the timelines, by a function that is generated for the
# response's class and reads only these fields: a walk over all fields takes five times as long.

_FIELD: Final = re.compile(r"(Sequence\[)?(\w+)\]?(?: \| None)?")
Finder = Callable[[Message], list[ErrorCode]]


def error_codes(message: Message) -> list[ErrorCode]:
    """Return all codes of a response except NONE, with repetitions, in the order of the fields."""
    cls: Any = type(message)
    return _finder(cls)(message)


def first_error(message: Message | None) -> ErrorCode | None:
    """Return the first of :func:`error_codes`; ``None`` if there is none, or no response (acks=0)."""
    codes = () if message is None else error_codes(message)
    return codes[0] if codes else None


@cache
def _finder(cls: Any) -> Finder:
    """Compile the function for a class of messages from source text, like the writers."""
    lines = ["def find(m0):", " found = []", *_lines(cls, 0), " return found"]
    names: dict[str, Any] = {}
    exec("\n".join(lines), names)  # names of generated classes' fields only  # noqa: S102
    finder: Finder = names["find"]
    return finder


def _lines(cls: type[Message], depth: int) -> list[str]:
    """Return the statements that read the codes of ``m{depth}``; none if the class has no codes.

    Annotations of generated messages are strings such as ``Sequence[Topic] | None``; evaluating them costs more.
    """
    module, here, inner = module_of(cls), " " * (depth + 1), depth + 1
    lines: list[str] = []
    for name, text in cls.FIELDS.items():
        match = _FIELD.fullmatch(text)
        if match is None:
            continue
        if match[2] == "ErrorCode":
            lines.append(f"{here}if m{depth}.{name}: found.append(m{depth}.{name})")
            continue
        struct = getattr(module, match[2], None)
        if not (isinstance(struct, type) and issubclass(struct, Message)):
            continue
        below = _lines(struct, inner)
        if below and match[1]:
            lines += [f"{here}for m{inner} in m{depth}.{name} or ():", *below]
        elif below:
            lines += [f"{here}m{inner} = m{depth}.{name}", f"{here}if m{inner} is not None:", *below]
    return lines
