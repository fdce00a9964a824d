"""Effects of faults as objects: `apply_then=understudy.Disconnect()` is more readable than a dictionary."""

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Error:
    """Respond with this error code, by Kafka's name."""

    code: str


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Close the connection: gracefully, or with a TCP reset."""

    how: Literal["close", "reset"] = "close"


@dataclass(frozen=True, slots=True)
class Drop:
    """Never respond; the connection stays open."""


@dataclass(frozen=True, slots=True)
class Delay:
    """Wait, on the cluster's clock."""

    ms: int


Action = Error | Disconnect | Drop | Delay


def as_json(action: Action) -> dict[str, Any]:
    """Return an action as JSON for the control plane."""
    match action:
        case Error(code):
            return {"error": code}
        case Disconnect(how):
            return {"disconnect": how}
        case Delay(ms):
            return {"delay_ms": ms}
        case Drop():
            return {"drop": True}


def wire(name: str, value: Any) -> Any:
    """Return an argument of a fault as JSON: actions become objects; `error=Error("...")` means `error="..."`.

    Raises:
        TypeError: a class instead of an instance, or a string instead of an action.
    """
    if isinstance(value, type) and issubclass(value, Action):
        raise TypeError(f"faults.add: {name} needs an action: write {value.__name__}(), with parentheses")
    if name == "apply_then" and isinstance(value, str):
        raise TypeError(f"faults.add: apply_then needs an action, such as understudy.Disconnect(), not {value!r}")
    if not isinstance(value, Action):
        return value
    document = as_json(value)
    return document.get(name, document)
