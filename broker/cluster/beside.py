"""What a server that runs beside the brokers, in their process, adds to the cluster; the cluster does not know it."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Function = Callable[..., Awaitable[Any]]
"""A function that answers a verb of the control plane, as in ``broker.control.verbs``."""


class Data(NamedTuple):
    """A key or a value. ``side`` is ``key`` or ``value``."""

    topic: str
    side: str
    data: bytes
    headers: Sequence[tuple[str, bytes | None]]


Decode = Callable[[Sequence[Data]], Awaitable[Sequence[Any]]]
"""What each was written with and decodes to, as the control plane answers it; ``None`` for data without a schema."""


@dataclass(slots=True)
class Beside:
    """Filled in at the start, before the cluster is announced."""

    addresses: dict[str, str] = field(default_factory=dict)
    """Name, such as ``schema_registry_url`` -> URL: of the ready file and, with dots, of the banner."""
    verbs: dict[str, Function] = field(default_factory=dict)
    """Verb -> the function that answers it."""
    decode: Decode | None = None
    """Decodes keys and values by their schemas; ``None`` where no schemas are known."""
    on_reset: list[Callable[[frozenset[str]], None]] = field(default_factory=list)
    """Called at each reset, with what is kept."""

    def reset(self, keep: frozenset[str]) -> None:
        """The cluster is reset."""
        for call in self.on_reset:
            call(keep)
