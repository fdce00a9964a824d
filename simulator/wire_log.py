"""The requests of a program and the responses that reached it, as its process saw them: what rules are checked against.

The brokers' journal has requests in the order of their arrival, and responses that were lost on their way.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from protocol.apis import ApiKey
from protocol.codec import SCRATCH_BYTES, FrameReader
from simulator.program import refuse

KEPT: Final = frozenset(
    {
        ApiKey.PRODUCE,
        ApiKey.OFFSET_COMMIT,
        ApiKey.JOIN_GROUP,
        ApiKey.HEARTBEAT,
        ApiKey.LEAVE_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.INIT_PRODUCER_ID,
        ApiKey.ADD_OFFSETS_TO_TXN,
        ApiKey.END_TXN,
        ApiKey.TXN_OFFSET_COMMIT,
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        ApiKey.SHARE_GROUP_HEARTBEAT,
    }
)
"""The APIs of which requests are kept: those that have an effect."""
_MOST_BYTES = 2**31 - 1  # the largest size of a frame


class Exchange(NamedTuple):
    """A request, and its response if that has reached the program; both without their sizes."""

    sent_us: int
    received_us: int
    broker: int
    connection: int
    request: bytes
    response: bytes | None


class Connection:
    """One connection of a program."""

    def __init__(self, log: "WireLog", program: str, broker: int, number: int) -> None:
        self._log, self._program, self._broker, self._number = log, program, broker, number
        self._sent, self._received = (FrameReader(_MOST_BYTES, log.scratch) for _ in range(2))
        self._waiting: dict[bytes, int] = {}
        """Correlation id -> place of its request in the log."""

    def sends(self, data: bytes, at_us: int) -> None:
        """Take what the program sends. Raises Unsimulated: it authenticates itself, which brokers do not expect."""
        for frame in _frames(self._sent, data):
            key = int.from_bytes(frame[:2])
            if key == ApiKey.SASL_HANDSHAKE:
                raise refuse("SASL", "use security_protocol PLAINTEXT in the simulation")
            if key in KEPT:
                requests = self._log.of.setdefault(self._program, [])
                self._waiting[frame[4:8]] = len(requests)  # the correlation id, after key and version
                requests.append(Exchange(at_us, -1, self._broker, self._number, frame, None))

    def receives(self, data: bytes, at_us: int) -> None:
        """Take what reaches the program."""
        for frame in _frames(self._received, data):
            if (place := self._waiting.pop(frame[:4], None)) is not None:  # by the correlation id
                requests = self._log.of[self._program]
                requests[place] = requests[place]._replace(received_us=at_us, response=frame)


class WireLog:
    """What all connections of a run exchanged."""

    def __init__(self) -> None:
        self.scratch = bytearray(SCRATCH_BYTES)
        self.of: dict[str, list[Exchange]] = {}
        """Name of an instance -> its requests, in the order in which it sent them."""

    def connection(self, program: str, broker: int, number: int) -> Connection:
        """Add a connection of a program."""
        return Connection(self, program, broker, number)


def _frames(reader: FrameReader, data: bytes) -> Iterator[bytes]:
    """Give bytes to a reader; return the frames that are complete then."""
    while data:
        buffer = reader.buffer()
        count = min(len(buffer), len(data))
        buffer[:count] = data[:count]
        yield from map(bytes, reader.received(count))
        data = data[count:]
