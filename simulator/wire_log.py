"""The requests of a program and the responses that reached it, as its process saw them: what rules are checked against.

The brokers' journal has requests in the order of their arrival, and responses that were lost on their way.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from protocol.apis import ApiKey
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


class Exchange(NamedTuple):
    """A request, and its response if that has reached the program; both without their sizes."""

    sent_us: int
    received_us: int
    broker: int
    connection: int
    request: bytes
    response: bytes | None


class _Frames:
    """Cuts the bytes of one direction into frames."""

    def __init__(self) -> None:
        self._rest = b""

    def of(self, data: bytes) -> Iterator[bytes]:
        """Return the frames that are complete with these bytes, without their sizes."""
        data, self._rest, at = self._rest + data, b"", 0
        while (end := at + 4 + int.from_bytes(data[at : at + 4])) <= len(data):
            yield data[at + 4 : end]
            at = end
            if at == len(data):
                return
        self._rest = data[at:]


class Connection:
    """One connection of a program."""

    def __init__(self, log: "WireLog", program: str, broker: int, number: int) -> None:
        self._log, self._program, self._broker, self._number = log, program, broker, number
        self._sent, self._received = _Frames(), _Frames()
        self._waiting: dict[bytes, int] = {}
        """Correlation id -> place of its request in the log."""

    def sends(self, data: bytes, at_us: int) -> None:
        """Take what the program sends. Raises Unsimulated: it authenticates itself, which brokers do not expect."""
        for frame in self._sent.of(data):
            key = int.from_bytes(frame[:2])
            if key == ApiKey.SASL_HANDSHAKE:
                raise refuse("SASL", "use security_protocol PLAINTEXT in the simulation")
            if key in KEPT:
                requests = self._log.of.setdefault(self._program, [])
                self._waiting[frame[4:8]] = len(requests)  # the correlation id, after key and version
                requests.append(Exchange(at_us, -1, self._broker, self._number, frame, None))

    def receives(self, data: bytes, at_us: int) -> None:
        """Take what reaches the program."""
        for frame in self._received.of(data):
            if (place := self._waiting.pop(frame[:4], None)) is not None:
                requests = self._log.of[self._program]
                requests[place] = requests[place]._replace(received_us=at_us, response=frame)


class WireLog:
    """What all connections of a run exchanged."""

    def __init__(self) -> None:
        self.of: dict[str, list[Exchange]] = {}
        """Name of an instance -> its requests, in the order in which it sent them."""

    def connection(self, program: str, broker: int, number: int) -> Connection:
        """Add a connection of a program."""
        return Connection(self, program, broker, number)
