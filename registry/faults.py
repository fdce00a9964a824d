"""Injected faults of the registry: error responses and delays."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from broker.time.clock import Clock, Waiter
from registry.errors import RegistryError


@dataclass(slots=True)
class Fault:
    """A fault: the requests that it affects, how many of them, and its effect."""

    id: str
    path: str = ""
    """Prefix of the path; empty: any."""
    method: str | None = None
    status: int | None = None
    """An HTTP status or an error code of the registry, such as 500 or 50002; None: the request is served."""
    message: str = "an injected fault"
    delay_ms: int = 0
    skip: int = 0
    times: int = 1
    """Most requests that it affects; 0: all."""
    hits: int = field(default=0)

    def matches(self, method: str, path: str) -> bool:
        """Whether the fault applies to a request, and is not used up."""
        meant = self.method in {None, method} and path.startswith(self.path)
        return meant and (not self.times or self.hits < self.times)


class Faults:
    """The registry's faults, in the order in which they were added."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._numbers = clock, count(1)
        self.all: dict[str, Fault] = {}

    def add(self, options: Mapping[str, Any]) -> Fault:
        """Add a fault; the options are fields of `Fault`, checked already."""
        fault = Fault(str(next(self._numbers)), **options)
        self.all[fault.id] = fault
        return fault

    def clear(self) -> int:
        """Remove all faults; return how many there were."""
        removed = len(self.all)
        self.all.clear()
        return removed

    def on_reset(self, keep: frozenset[str]) -> None:
        """Remove all faults after a reset of the cluster, unless it keeps them."""
        if "faults" not in keep:
            self.clear()

    async def meet(self, method: str, path: str) -> None:
        """Delay or refuse a request if a fault applies to it. Raises RegistryError."""
        for fault in list(self.all.values()):
            if not fault.matches(method, path):
                continue
            if fault.skip:
                fault.skip -= 1
                continue
            fault.hits += 1
            if fault.delay_ms:
                await Waiter().wait(self._clock, self._clock.now_ms() + fault.delay_ms)
            if fault.status is not None:
                raise RegistryError(fault.status, fault.message)
            return
