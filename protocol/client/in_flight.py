"""The client's end of a connection: numbers the requests, cuts frames, and decodes the responses in their order."""

import struct
from collections import deque
from typing import Any, Final, NamedTuple

from protocol.apis import ApiKey
from protocol.codec import decode_response, encode_request
from protocol.errors import ErrorCode
from protocol.types import Buffer

_SIZE: Final = struct.Struct(">i")
_UNSUPPORTED_VERSION: Final = int(ErrorCode.UNSUPPORTED_VERSION).to_bytes(2)


class BadResponse(ValueError):
    """Bytes that are no response to the oldest request: a negative size, a wrong correlation id, another layout."""


class Pending(NamedTuple):
    """A request that has no response yet."""

    correlation_id: int
    key: ApiKey
    version: int


class InFlightRequests:
    """The requests of one connection, which may be sent before the responses to earlier ones have arrived."""

    def __init__(self, client_id: str | None) -> None:
        self.client_id = client_id
        self.pending: deque[Pending] = deque()
        """The requests without a response, oldest first."""
        self._count = 0
        self._bytes = bytearray()

    def encode(self, key: ApiKey, version: int, message: Any, *, answered: bool = True) -> bytes:
        """Return a request's frame, from its newest shape; ``answered`` is false for a Produce with acks=0."""
        self._count += 1
        if answered:
            self.pending.append(Pending(self._count, key, version))
        return encode_request(key, version, self._count, self.client_id, message)

    @property
    def missing_bytes(self) -> int:
        """Return how many bytes to read next: those of a frame's size, then those of its body. Raises BadResponse."""
        return max(4 + (self._frame_size() if len(self._bytes) >= 4 else 0) - len(self._bytes), 0)

    def receive(self, data: Buffer) -> None:
        """Take bytes from the broker, as many as there are."""
        self._bytes += data

    def frame(self) -> bytes | None:
        """Return the next frame without its size; None if it is not complete. Raises BadResponse."""
        if len(self._bytes) < 4 or self.missing_bytes:  # the size
            return None
        end = 4 + self._frame_size()
        frame = bytes(memoryview(self._bytes)[4:end])  # without the size
        del self._bytes[:end]
        return frame

    def decode(self, frame: bytes) -> Any:
        """Decode a frame as the response to the oldest request, in the API's newest shape. Raises BadResponse."""
        if not self.pending:
            raise BadResponse("a response without a request")
        expected, key, version = self.pending.popleft()
        # A broker that does not serve the version of ApiVersions answers in version 0 (KIP-511).
        refused = key is ApiKey.API_VERSIONS and frame[4:6] == _UNSUPPORTED_VERSION
        try:
            correlation_id, response = decode_response(key, 0 if refused else version, frame)
        except (IndexError, ValueError, struct.error) as error:
            raise BadResponse(f"a response to {key.title} cannot be read: {error}") from error
        if correlation_id != expected:
            raise BadResponse(f"the response to request {correlation_id} arrived where {expected} was due")
        return response

    def _frame_size(self) -> int:
        (size,) = _SIZE.unpack_from(self._bytes)
        if size < 0:
            raise BadResponse(f"a response cannot be read: a frame of {size} bytes")
        return int(size)
