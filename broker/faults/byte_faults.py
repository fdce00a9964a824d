"""Bytes of an answer spoiled on purpose: cut off, flipped, under another number, in drops, with more behind them.

Offsets count from the first byte on the wire, that is from the frame's size: 0 to 3 are the size, 4 to 7 the
correlation id, the rest is header and body.
"""

import struct
from dataclasses import dataclass

from broker.answers import Sending

_CORRELATION_ID_AT = 4


@dataclass(frozen=True, slots=True)
class Truncate:
    """Only the first ``size`` bytes, then the connection is closed."""

    size: int

    def spoil(self, answer: bytes) -> Sending:
        """The bytes to send."""
        return Sending((answer[: self.size],), closes=True)


@dataclass(frozen=True, slots=True)
class Corrupt:
    """Bits of one byte are flipped; a negative offset counts from the end. An answer that is too short stays whole."""

    offset: int
    mask: int

    def spoil(self, answer: bytes) -> Sending:
        """The bytes to send."""
        spoiled = bytearray(answer)
        if -len(spoiled) <= self.offset < len(spoiled):
            spoiled[self.offset] ^= self.mask
        return Sending((bytes(spoiled),))


@dataclass(frozen=True, slots=True)
class Renumber:
    """Another correlation id than the request's."""

    correlation_id: int

    def spoil(self, answer: bytes) -> Sending:
        """The bytes to send."""
        number = struct.pack(">i", self.correlation_id)
        return Sending((answer[:_CORRELATION_ID_AT] + number + answer[_CORRELATION_ID_AT + 4 :],))


@dataclass(frozen=True, slots=True)
class Drip:
    """Pieces of ``size`` bytes, one every ``every_ms`` of the cluster's clock."""

    size: int
    every_ms: int

    def spoil(self, answer: bytes) -> Sending:
        """The bytes to send."""
        pieces = tuple(answer[at : at + self.size] for at in range(0, len(answer), self.size))
        return Sending(pieces, self.every_ms)


@dataclass(frozen=True, slots=True)
class Extra:
    """More bytes after the answer, which its size does not include."""

    data: bytes

    def spoil(self, answer: bytes) -> Sending:
        """The bytes to send."""
        return Sending((answer + self.data,))


ByteFault = Truncate | Corrupt | Renumber | Drip | Extra
