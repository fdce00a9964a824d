"""Byte faults: a response is truncated, corrupted, sent in small pieces, or gets another correlation id or extra bytes.

Offsets count from the first byte on the wire: bytes 0 to 3 are the frame's size, 4 to 7 the correlation id, the rest
is header and body.
"""

import struct

from broker.request.answers import Sending
from protocol.deferred import dataclass

_CORRELATION_ID_AT = 4  # behind the size


@dataclass(frozen=True, slots=True)
class Truncate:
    """Sends only the first ``size`` bytes, then closes the connection."""

    size: int

    def spoil(self, answer: bytes) -> Sending:
        """Return the bytes to send."""
        return Sending((answer[: self.size],), closes=True)


@dataclass(frozen=True, slots=True)
class Corrupt:
    """Flips bits of one byte; a negative offset counts from the end. A response that is too short is not changed."""

    offset: int
    mask: int

    def spoil(self, answer: bytes) -> Sending:
        """Return the bytes to send."""
        spoiled = bytearray(answer)
        if -len(spoiled) <= self.offset < len(spoiled):
            spoiled[self.offset] ^= self.mask
        return Sending((bytes(spoiled),))


@dataclass(frozen=True, slots=True)
class Renumber:
    """Responds with this correlation id instead of the request's."""

    correlation_id: int

    def spoil(self, answer: bytes) -> Sending:
        """Return the bytes to send."""
        number = struct.pack(">i", self.correlation_id)
        # An INT32.
        return Sending((answer[:_CORRELATION_ID_AT] + number + answer[_CORRELATION_ID_AT + 4 :],))


@dataclass(frozen=True, slots=True)
class Drip:
    """Sends pieces of ``size`` bytes, one every ``every_ms`` of the cluster's clock."""

    size: int
    every_ms: int

    def spoil(self, answer: bytes) -> Sending:
        """Return the bytes to send."""
        pieces = tuple(answer[at : at + self.size] for at in range(0, len(answer), self.size))
        return Sending(pieces, self.every_ms)


@dataclass(frozen=True, slots=True)
class Extra:
    """Sends more bytes after the response, which its size field does not include."""

    data: bytes

    def spoil(self, answer: bytes) -> Sending:
        """Return the bytes to send."""
        return Sending((answer + self.data,))


ByteFault = Truncate | Corrupt | Renumber | Drip | Extra
