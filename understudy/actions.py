"""What a fault does, as objects: `apply_then=understudy.Disconnect()` reads better than a dictionary."""

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Error:
    """Answer this error code, by Kafka's name."""

    code: str

    def wire(self) -> dict[str, Any]:
        """As the control plane reads it."""
        return {"error": self.code}


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Hang up: close in good order, or reset."""

    how: Literal["close", "reset"] = "close"

    def wire(self) -> dict[str, Any]:
        """As the control plane reads it."""
        return {"disconnect": self.how}


@dataclass(frozen=True, slots=True)
class Drop:
    """Never answer; the connection stays."""

    def wire(self) -> dict[str, Any]:
        """As the control plane reads it."""
        return {"drop": True}


@dataclass(frozen=True, slots=True)
class Delay:
    """Wait, on the cluster's clock."""

    ms: int

    def wire(self) -> dict[str, Any]:
        """As the control plane reads it."""
        return {"delay_ms": self.ms}


Action = Error | Disconnect | Drop | Delay


def wire(value: Any) -> Any:
    """An argument of a fault as JSON: actions become objects, everything else stays."""
    return value.wire() if isinstance(value, Action) else value
