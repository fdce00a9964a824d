"""The interface of all SASL mechanisms: they process tokens, and yield an identity."""

from typing import Protocol

from protocol.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Identity:
    """An authenticated name, and the time in ms at which it expires by the cluster's clock; ``None``: never."""

    name: str
    expires_at_ms: int | None = None
    by_token: bool = False
    """Authenticated by a delegation token, which cannot create further tokens."""


class Exchange(Protocol):
    """One authentication, from its first token to its last."""

    identity: Identity | None
    """Set once the authentication is complete."""

    def step(self, token: bytes) -> bytes:
        """Process a client's token; return the server's next one, which may be empty. Raises :class:`Refused`."""
        ...


class Refused(Exception):
    """A token was refused, and the authentication has failed.

    ``message`` is for the client; without one the client gets only that its credentials are invalid.
    """

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or "invalid credentials")
        self.message = message
