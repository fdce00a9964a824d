"""Answers to requests, and the two exceptions for requests that get none."""

from protocol.deferred import dataclass
from protocol.writers import Parts


@dataclass(frozen=True, slots=True)
class Sending:
    """An answer written in several pieces with pauses between them, or one after which the connection is closed."""

    pieces: tuple[bytes, ...]
    every_ms: int = 0
    closes: bool = False


Answer = Parts | Sending | None
"""The bytes of the answer; ``None``: no answer is sent."""


class Disconnect(Exception):
    """Raised to close the connection without an answer, as Kafka does where it cannot answer.

    ``reason`` is logged in one line; ``reset`` sends a TCP reset instead of closing in order. ``on_purpose`` marks a
    fault or a reset of the cluster, as opposed to a broker that closes the connection by itself.
    """

    def __init__(self, reason: str, *, reset: bool = False, on_purpose: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.reset, self.on_purpose = reason, reset, on_purpose


class NeverAnswer(Exception):
    """Raised by a fault that leaves the connection open but answers neither this request nor any later one on it."""
