"""The hooks of a server that runs beside the brokers in their process; the cluster knows nothing else of it."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from typing import Any, NamedTuple

from protocol.deferred import dataclass

Function = Callable[..., Awaitable[Any]]
"""A function for a command of the control plane, as in ``broker.control.verbs``."""


class Data(NamedTuple):
    """A record's key or value. ``side`` is ``key`` or ``value``."""

    topic: str
    side: str
    data: bytes
    headers: Sequence[tuple[str, bytes | None]]


Decode = Callable[[Sequence[Data]], Awaitable[Sequence[Any]]]
"""Returns each schema and decoded value, as the control plane reports them; ``None`` for data without a schema."""


@dataclass(slots=True)
class Beside:
    """The hooks; filled in before the cluster is announced."""

    addresses: dict[str, str] = field(default_factory=dict)
    """Name, such as ``schema_registry_url`` -> URL, for the ready file and, with dots in the name, for the banner."""
    verbs: dict[str, Function] = field(default_factory=dict)
    """Name of a command -> its function."""
    decode: Decode | None = None
    """Decodes keys and values by their schemas; ``None`` without a schema registry."""
    on_reset: list[Callable[[frozenset[str]], None]] = field(default_factory=list)
    """Called at each reset, with the parts of the state that are kept."""

    def reset(self, keep: frozenset[str]) -> None:
        """Call the hooks for a reset."""
        for call in self.on_reset:
            call(keep)
