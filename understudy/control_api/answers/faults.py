"""Faults as the server holds them."""

from dataclasses import dataclass, field
from typing import Any, TypedDict


@dataclass(frozen=True, slots=True)
class FaultState:
    """A fault as the server holds it; `match` and `do` as they were given."""

    id: str
    hits: int = 0
    match: dict[str, Any] = field(default_factory=dict)
    do: dict[str, Any] = field(default_factory=dict)
    skip: int = 0
    times: int | None = 1
    probability: float = 1.0

    @property
    def met(self) -> bool:
        """Whether a request has met it."""
        return self.hits > 0


class Faults(TypedDict):
    """Faults, the oldest first."""

    faults: list[FaultState]
