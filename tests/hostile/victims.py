"""What tests of bad input do to a broker, and what they look at afterwards."""

import struct
from dataclasses import dataclass
from typing import Any

from protocol.apis import ApiKey
from tests.serving import Server, until
from tests.wire import Wire, framed, header

MAX_INT = 2**31 - 1


def count(number: int) -> bytes:
    """An array's length, as versions that are not flexible write it."""
    return struct.pack(">i", number)


@dataclass
class Victim:
    """A broker that is sent what it should not be sent."""

    broker: Server
    resident_bytes_before: int = 0
    """What its growth is measured from: raised by a test whose first request alone fills caches that are reused."""

    def sent(self, data: bytes) -> Wire:
        """A new connection on which these bytes were sent."""
        wire = self.broker.wire()
        wire.send_bytes(data)
        return wire

    def check_refused(
        self, data: bytes, reason: str = "", *, api: str | None = None, version: int | None = None
    ) -> None:
        """Check that the connection is closed, with one line in the log that has peer, request and reason."""
        since = self.broker.log_position()
        wire = self.sent(data)
        peer = "{}:{}".format(*wire.socket.getsockname())
        wire.check_closed()
        (line,) = until(lambda: self.lines_of(peer, since), f"a log line about {peer}")
        assert line["event"] == "connection closed"
        assert reason in line["reason"], line
        assert (line.get("api"), line.get("version")) == (api, version), line

    def check_request_refused(self, key: ApiKey, version: int, body: bytes, reason: str = "") -> None:
        """The same for a request with a sound header and this body."""
        self.check_refused(framed(header(key, version) + body), reason, api=key.title, version=version)

    def lines_of(self, peer: str, since: int) -> list[dict[str, Any]]:
        """The log's lines about a peer, from a position on."""
        return [line for line in self.broker.log_lines(since) if line.get("peer") == peer]
