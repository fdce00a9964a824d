"""Measures the processor time of other processes during a measurement, which a median cannot remove."""

import os
import time
from collections.abc import Iterable
from pathlib import Path

from benchmarks.targets import Server


class Neighbours:
    """Measures all processes except this one, its children and the servers, from its construction on."""

    def __init__(self, servers: Iterable[Server]) -> None:
        self._servers = tuple(servers)
        self._begun = time.monotonic()
        self._busy, self._own = _busy_s(), self._own_s()

    def used(self) -> float:
        """Return the processors that other processes and the kernel used on average."""
        own, busy = self._own_s() - self._own, _busy_s() - self._busy
        return max(busy - own, 0.0) / (time.monotonic() - self._begun)

    def _own_s(self) -> float:
        times = os.times()
        mine = times.user + times.system + times.children_user + times.children_system
        return mine + sum(server.cpu_s() for server in self._servers)


def _busy_s() -> float:
    """Return the busy seconds of all processors since boot: everything except idle and disk waits."""
    user, nice, system, _idle, _wait, irq, soft_irq, stolen = (
        int(field) for field in Path("/proc/stat").read_text().split(maxsplit=9)[1:9]
    )
    return (user + nice + system + irq + soft_irq + stolen) / os.sysconf("SC_CLK_TCK")
