"""Ports of clusters that ended a short time ago, which no other cluster of the process gets meanwhile.

A client that a test forgot is refused then, instead of served by the cluster of another test. A minute is the default
timeout of most clients' calls; 4,096 ports leave others of the some 28,000 that a system gives away.
"""

from collections.abc import Iterable, Iterator

from broker.time.clock import stopwatch_ns

_KEPT_NS = 60_000_000_000  # a minute; the reasons of both numbers are above
_MOST = 4096


class RecentPorts:
    """The ports, for a minute each by the machine's time; of more than 4,096 only the latest."""

    def __init__(self) -> None:
        self._until_ns: dict[int, int] = {}

    def add(self, ports: Iterable[int]) -> None:
        """Keep ports that are being closed."""
        now_ns = stopwatch_ns()
        for port in ports:
            self._until_ns.pop(port, None)
            self._until_ns[port] = now_ns + _KEPT_NS
        for port in list(self._over(now_ns)):
            del self._until_ns[port]

    def __contains__(self, port: object) -> bool:
        """Return whether the port was closed within the last minute."""
        return isinstance(port, int) and self._until_ns.get(port, 0) > stopwatch_ns()

    def _over(self, now_ns: int) -> Iterator[int]:
        excess = len(self._until_ns) - _MOST
        for number, (port, until_ns) in enumerate(self._until_ns.items()):
            if number >= excess and until_ns > now_ns:
                return
            yield port
