"""The interface of all SASL mechanisms: tokens come in, tokens go out, and the result is a name."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Identity:
    """An authenticated name, and until when it holds (ms of the cluster's clock); ``None``: forever."""

    name: str
    expires_at_ms: int | None = None
    by_token: bool = False
    """By a delegation token, which makes no further ones."""


class Exchange(Protocol):
    """One authentication, from its first token to its last."""

    identity: Identity | None
    """Once it is complete."""

    def step(self, token: bytes) -> bytes:
        """The server's next token, which may be empty. Raises :class:`Refused`."""
        ...


class Refused(Exception):
    """The token is refused, and the authentication has failed.

    ``message`` is for the client; without one it learns only that its credentials are invalid.
    """

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or "invalid credentials")
        self.message = message
