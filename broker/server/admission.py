"""When the connections of a broker are served: its limit, those of its listeners, and their rates (ConnectionQuotas).

As in Kafka, each listener accepts its connections one after the other, and the listener between brokers has only its
own limits, if it is not the only one.
"""

from collections import Counter, deque
from typing import Generic, Protocol, TypeVar

from broker.access.rates import Rate, Windows
from broker.settings import BrokerSettings
from broker.settings.model import MAX_INT
from broker.time.clock import Clock

_MOST, _RATE = "max.connections", "max.connection.creation.rate"


class Served(Protocol):
    """A connection, as far as its start is concerned."""

    def start(self) -> None:
        """Begin to read and to serve."""
        ...


C = TypeVar("C", bound=Served)


class Admission(Generic[C]):
    """The connections of one broker that are served, and those that wait unread."""

    def __init__(self, settings: BrokerSettings, clock: Clock) -> None:
        self._settings, self._clock = settings, clock
        self._windows = Windows(settings.int("quota.window.num"), settings.int("quota.window.size.seconds") * 1000)
        self._listeners: dict[C, str] = {}
        self._queues: dict[str, deque[C]] = {}
        self._waiting: set[C] = set()
        self._served: Counter[str] = Counter()
        self._until: dict[str, int] = {}
        """When a listener's first waiting connection is served at the earliest, because of the rates."""
        self._rates: dict[str | None, Rate] = {}
        """The rate of each listener; None: of the broker."""
        self._protected: str | None = None
        self.follow_settings()

    def arrive(self, connection: C, listener: str) -> None:
        """Serve a connection, or let it wait behind its listener's others."""
        self._listeners[connection] = listener
        self._queues.setdefault(listener, deque()).append(connection)
        self._waiting.add(connection)
        self.accept()

    def replace(self, before: C, connection: C) -> None:
        """Count a connection in place of its handshake, which is served."""
        self._listeners[connection] = self._listeners.pop(before)

    def leave(self, connection: C) -> None:
        """Remove a connection, and serve those for which there is space now."""
        listener = self._listeners.pop(connection, None)
        if listener is None:
            return
        if connection not in self._waiting:
            self._served[listener] -= 1
            self.accept()
            return
        self._waiting.remove(connection)
        self._queues[listener].remove(connection)
        if not self._queues[listener]:
            self._until.pop(listener, None)

    def accept(self) -> None:
        """Serve waiting connections, as far as the limits allow, those between brokers first."""
        for listener in sorted(self._queues, key=lambda name: name != self._protected):
            queue = self._queues[listener]
            while queue and self._is_due(listener) and self._has_slot(listener):
                del self._until[listener]
                connection = queue.popleft()
                self._waiting.remove(connection)
                self._served[listener] += 1
                connection.start()

    def excess(self) -> tuple[int, set[C]]:
        """Return how many connections are to be closed, and which not: waiting ones, and those between brokers."""
        most = self._settings.int(_MOST)
        number = self._served.total() - most
        if number <= 0:
            return 0, set()
        return number, self._waiting | {each for each, name in self._listeners.items() if name == self._protected}

    def follow_settings(self) -> None:
        """Find the listener between brokers, and serve those for which there is space now."""
        settings = self._settings
        controllers = {name.upper() for name in settings.list("controller.listener.names")}
        names = {each.partition("://")[0].upper() for each in settings.list("listeners")} - controllers
        listener_name = settings.optional_string("inter.broker.listener.name")
        between = (listener_name or settings.string("security.inter.broker.protocol")).upper()
        self._protected = between if len(names) > 1 and between in names else None
        self.accept()

    def clear(self) -> None:
        """Let none of those that wait be served, and forget the rates."""
        self._queues.clear()
        self._until.clear()
        self._rates.clear()
        for connection in self._waiting:
            del self._listeners[connection]
        self._waiting.clear()

    def _has_slot(self, listener: str) -> bool:
        if self._served[listener] >= self._limit(listener, _MOST):
            return False
        return listener == self._protected or self._served.total() < self._settings.int(_MOST)

    def _is_due(self, listener: str) -> bool:
        """Whether the rates allow a listener's first waiting connection now; they count it when it is the first."""
        now_ms = self._clock.now_ms()
        if listener not in self._until:
            throttle_ms = self._charge(listener, self._limit(listener, _RATE), now_ms)
            if listener != self._protected:
                throttle_ms = max(throttle_ms, self._charge(None, self._settings.int(_RATE), now_ms))
            self._until[listener] = now_ms + throttle_ms
            if throttle_ms:
                self._clock.call_at(now_ms + throttle_ms, self.accept)
        return now_ms >= self._until[listener]

    def _charge(self, name: str | None, bound: int, now_ms: int) -> int:
        """Record a connection; return for how many ms it waits, at most one window."""
        if bound == MAX_INT:
            return 0
        rate = self._rates.setdefault(name, Rate(self._windows))
        rate.record(1, now_ms)
        return min(rate.throttle_ms(bound, now_ms), self._windows.size_ms) if bound else self._windows.size_ms

    def _limit(self, listener: str, name: str) -> int:
        """Return a listener's own limit, or the broker's."""
        limit = self._settings.of_listener(listener, name)
        return limit if isinstance(limit, int) else MAX_INT
