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


def wire(name: str, value: Any) -> Any:
    """An argument of a fault as JSON: actions become objects; `error=Error("...")` says what `error="..."` says.

    Raises:
        TypeError: a class stands where one of its objects should, or a name where an action should.
    """
    if isinstance(value, type) and issubclass(value, Action):
        raise TypeError(f"faults.add: {name} needs an action: write {value.__name__}(), with parentheses")
    if name == "apply_then" and isinstance(value, str):
        raise TypeError(f"faults.add: apply_then needs an action, such as understudy.Disconnect(), not {value!r}")
    if not isinstance(value, Action):
        return value
    said = value.wire()
    return said.get(name, said)
