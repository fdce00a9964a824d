"""What goes out for a request, and the two ways in which nothing does."""

from dataclasses import dataclass

from protocol.writers import Parts


@dataclass(frozen=True, slots=True)
class Sending:
    """An answer that is not simply written: pieces with a pause between them, and perhaps the connection's end."""

    pieces: tuple[bytes, ...]
    every_ms: int = 0
    closes: bool = False


Answer = Parts | Sending | None
"""The bytes that go out; ``None``: nothing is sent."""


class Disconnect(Exception):
    """Close the connection without an answer, as Kafka does where a reply makes no sense.

    ``reason`` goes into one log line; ``reset`` asks for a TCP reset instead of an orderly close. ``on_purpose``: it is
    a fault or a reset of the cluster, and not the broker that closes it.
    """

    def __init__(self, reason: str, *, reset: bool = False, on_purpose: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.reset, self.on_purpose = reason, reset, on_purpose


class NeverAnswer(Exception):
    """Answer nothing, and nothing more on this connection, which stays open: a fault that was asked for."""
