"""The open connections of one broker, and their limits: number, idle time, memory.

Nothing that a client sends, or does not send, makes the broker grow without bound (core A.4): connections are limited,
and incomplete requests have a deadline and a common memory budget.
"""

import ipaddress
import socket
from collections import Counter, OrderedDict
from collections.abc import Callable, Container, Iterator
from itertools import islice
from typing import Final, Generic, Protocol, TypeVar

from broker.server.admission import Admission
from broker.settings import BrokerSettings
from broker.time.clock import Clock
from broker.time.timers import Timer

DEFAULT_HELD_BYTES: Final = 512 * 1024 * 1024
"""The memory budget if ``queued.max.request.bytes`` is -1, which means no limit in Kafka.

Ours, five of the largest requests by default.
"""
ROOMY_BYTES: Final = 32 * 1024 * 1024
"""While unserved requests take less than this, the buffer of a large frame is allocated before it has arrived."""
CONNECTION_BYTES: Final = 40 * 1024
"""Memory of a connection with TLS (36 KB, measured with 2,000 of them); one without takes less."""
PARTIAL_TIMEOUT: Final = "understudy.partial.frame.timeout.ms"
IDLE_TIMEOUT: Final = "connections.max.idle.ms"


class Held(Protocol):
    """A connection or TLS handshake, as far as limits are concerned."""

    def hang_up(self, *, reset: bool = False) -> None:
        """Close the connection."""
        ...

    def refuse(self, reason: str) -> None:
        """Close the connection, and log the reason in one line."""
        ...

    def start(self) -> None:
        """Begin to read and to serve."""
        ...


C = TypeVar("C", bound=Held)


class IdleTimeouts(Generic[C]):
    """Expires connections that were idle for longer than a setting in ms (negative: never), with one timer for all.

    If the setting was given, the cluster's clock decides, pushes included. By default the machine's time does: a test
    that pushes the clock by an hour does not mean that its clients were idle for an hour.
    """

    def __init__(self, name: str, settings: BrokerSettings, clock: Clock, expire: Callable[[C], None]) -> None:
        self._name, self._settings, self._clock, self._expire = name, settings, clock, expire
        self._now = clock.now_ms if name in settings.static else clock.machine_ms
        self._since: OrderedDict[C, int] = OrderedDict()
        self._timer: Timer | None = None

    def touch(self, connection: C) -> None:
        """Note that the connection is active now."""
        self._since[connection] = self._now()
        self._since.move_to_end(connection)
        if self._timer is None:
            self._arm()

    def forget(self, connection: C) -> None:
        """Drop the connection, so that it never expires."""
        self._since.pop(connection, None)

    def longest_idle(self) -> C | None:
        """Return the connection that would expire first."""
        return next(iter(self._since), None)

    def longest_first(self, *, without: Container[C]) -> Iterator[C]:
        """Iterate over the connections in the order in which they would expire."""
        return (each for each in self._since if each not in without)

    def clear(self) -> None:
        """Drop all connections."""
        self._since.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        limit_ms = self._settings.long(self._name)
        if limit_ms < 0 or not self._since:
            return
        left_ms = next(iter(self._since.values())) + limit_ms - self._now()
        self._timer = self._clock.call_at(self._clock.now_ms() + max(left_ms, 1), self._expire_due)

    def _expire_due(self) -> None:
        self._timer = None
        limit_ms = self._settings.long(self._name)
        while self._since and limit_ms >= 0:
            connection, since_ms = next(iter(self._since.items()))
            if self._now() - since_ms < limit_ms:
                break
            del self._since[connection]
            self._expire(connection)
        self._arm()


class Connections(Generic[C]):
    """The connections of one broker."""

    def __init__(self, settings: BrokerSettings, clock: Clock, most: int = 2**31) -> None:  # no limit
        self._settings, self._clock = settings, clock
        self.most = most
        """The limit that results from the process's file descriptors."""
        self.open: dict[C, str] = {}
        """Each connection with its client's address."""
        self.spares = 0
        """Additional descriptors that connections hold: each has a second one during its TLS handshake."""
        self.held_bytes = 0
        """Memory of requests that are not being served yet."""
        self.idle = IdleTimeouts[C](IDLE_TIMEOUT, settings, clock, lambda each: each.hang_up())
        self.partial = IdleTimeouts[C](PARTIAL_TIMEOUT, settings, clock, _too_slow)
        self.admission = Admission[C](settings, clock)
        self._by_host: Counter[str] = Counter()
        self.throttle_ms: Callable[[str, int], int] | None = None
        """Address and time -> for how many ms a connection is left unread before it is closed (KIP-612)."""
        self.on_freed: Callable[[int], None] | None = None
        """Called with the size of a closed connection, in bytes."""
        self._throttled: set[C] = set()
        self._overrides = ""
        self._limits: dict[str, int] = {}
        """``max.connections.per.ip.overrides``, and the limits that it gives by address."""
        self.budget_bytes = 0
        """The limit of ``held_bytes``."""
        settings.on_change(lambda _: self._follow_settings())
        self._follow_settings()

    def join(self, connection: C, host: str, listener: str = "") -> bool:
        """Add a connection from an address to a listener; return false if it is to be closed immediately.

        Above ``max.connections`` it waits, unread, until another one closes. If the process runs out of descriptors,
        the longest idle connection is closed. A connection above its address's rate quota is not counted at all.
        """
        now_ms = self._clock.now_ms()
        if self.throttle_ms is not None and (throttle_ms := self.throttle_ms(host, now_ms)):
            self._throttled.add(connection)
            self._clock.call_at(now_ms + throttle_ms, connection.hang_up)
            return True
        self.open[connection] = host
        self._by_host[host] += 1
        if self._by_host[host] > self._limit_of(host):
            return False
        self.idle.touch(connection)
        if len(self.open) + self.spares > self.most and (oldest := self.idle.longest_idle()) is not None:
            oldest.refuse(f"{self.most} connections are open, and this one was idle for the longest time")
        if connection in self.open:
            self.admission.arrive(connection, listener)
            self._close_excess()  # the listener between brokers may exceed the broker's limit
        return True

    def succeed(self, before: C, connection: C) -> None:
        """Count a connection in place of its handshake, and start it."""
        self.open[connection] = self.open.pop(before)
        self.admission.replace(before, connection)
        self.idle.forget(before)
        self.partial.forget(before)
        self.idle.touch(connection)
        connection.start()

    def _limit_of(self, host: str) -> int:
        limit = self._limits.get(host)
        return self._settings.int("max.connections.per.ip") if limit is None else limit

    def leave(self, connection: C) -> None:
        """Remove a closed connection, and start one that waits."""
        host = self.open.pop(connection, None)
        if host is None:
            self._throttled.discard(connection)
            return
        self.idle.forget(connection)
        self.partial.forget(connection)
        self._by_host[host] -= 1
        if not self._by_host[host]:
            del self._by_host[host]
        if self.on_freed is not None:
            self.on_freed(CONNECTION_BYTES)
        self.admission.leave(connection)

    def _close_excess(self) -> None:
        """Close the longest idle connections while more are open than allowed (closeExcessConnections)."""
        excess, spared = self.admission.excess()
        if excess:
            for connection in list(islice(self.idle.longest_first(without=spared), excess)):
                connection.hang_up()

    def account(self, more_bytes: int) -> None:
        """Add to the memory held by incomplete requests; above the budget the slowest sender is closed."""
        self.held_bytes += more_bytes
        if more_bytes <= 0:
            return
        while self.held_bytes > self.budget_bytes and (slowest := self.partial.longest_idle()) is not None:
            self.partial.forget(slowest)
            slowest.refuse(f"incomplete requests take {self.held_bytes} bytes, {self.budget_bytes} are allowed")

    def _follow_settings(self) -> None:
        configured_bytes = self._settings.long("queued.max.request.bytes")
        self.budget_bytes = DEFAULT_HELD_BYTES if configured_bytes < 0 else configured_bytes
        overrides = self._settings.string("max.connections.per.ip.overrides")
        if overrides != self._overrides:
            self._overrides, self._limits = overrides, _limits(overrides)
        self.admission.follow_settings()  # a limit may have been raised (ConnectionQuotas.updateBrokerMaxConnections)
        self._close_excess()  # or lowered

    @property
    def roomy(self) -> bool:
        """Whether there is enough memory to allocate the buffer of a large frame before it has arrived."""
        # A quarter: several frames may be announced before any of them has arrived.
        return self.held_bytes < min(self.budget_bytes // 4, ROOMY_BYTES)

    def close(self, *, reset: bool = False) -> None:
        """Close all connections."""
        self.admission.clear()
        for connection in [*self.open, *self._throttled]:
            connection.hang_up(reset=reset)
        self.idle.clear()
        self.partial.clear()


def _limits(overrides: str) -> dict[str, int]:
    """Return the limit by address; names are resolved once (ConnectionQuotas.updateMaxConnectionsPerIpOverride)."""
    parts = [each.strip().rpartition(":") for each in overrides.split(",")]
    return {_address(host.strip()): int(limit) for host, _, limit in parts if host.strip()}


def _address(host: str) -> str:
    """Return the address of a host as sockets report it; the host itself if it cannot be resolved."""
    try:
        return str(ipaddress.ip_address(host.removeprefix("[").removesuffix("]")))
    except ValueError:
        pass
    try:
        return socket.gethostbyname(host)
    except (OSError, ValueError):  # ValueError: the text is not a valid host name
        return host


def _too_slow(connection: Held) -> None:
    connection.refuse("a request or a TLS handshake was not completed in time")
