"""The open connections of one broker: who may join, who has been silent for too long, how many bytes they make us hold.

Nothing that a peer sends, or fails to send, makes the broker grow past a bound (core A.4): connections have a limit,
frames under way have a deadline and a common budget of bytes.
"""

from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from broker.clock import Clock, Timer
from broker.settings import BrokerSettings

DEFAULT_HELD_BYTES = 512 * 1024 * 1024
"""What ``queued.max.request.bytes`` means here while it is -1: Kafka has no bound then."""
ROOMY_BYTES = 32 * 1024 * 1024
"""As long as unserved requests take less, a large frame has its buffer before it has arrived."""
PARTIAL_TIMEOUT = "understudy.partial.frame.timeout.ms"
IDLE_TIMEOUT = "connections.max.idle.ms"


class Held(Protocol):
    """A connection as far as its limits go."""

    def hang_up(self, *, reset: bool = False) -> None:
        """Close."""
        ...

    def refuse(self, reason: str) -> None:
        """Close, with one line in the log."""
        ...

    def begin(self) -> None:
        """Start to read and to serve."""
        ...


C = TypeVar("C", bound=Held)


class Silence(Generic[C]):
    """Who has not been heard of for too long, by a setting in ms; negative: nobody ever. One timer for all.

    Where the setting was given, the cluster's clock decides, pushes included. By default the machine's time does: a
    test that pushes an hour to see something expire does not mean that its clients were silent for an hour.
    """

    def __init__(self, name: str, settings: BrokerSettings, clock: Clock, expire: Callable[[C], None]) -> None:
        self._name, self._settings, self._clock, self._expire = name, settings, clock, expire
        self._now = clock.now_ms if name in settings.static else clock.machine_ms
        self._since: OrderedDict[C, int] = OrderedDict()
        self._timer: Timer | None = None

    def heard(self, who: C) -> None:
        """It did something just now."""
        self._since[who] = self._now()
        self._since.move_to_end(who)
        if self._timer is None:
            self._arm()

    def forget(self, who: C) -> None:
        """It is not waited for any more."""
        self._since.pop(who, None)

    def longest(self) -> C | None:
        """Who has been silent for longest."""
        return next(iter(self._since), None)

    def cancel(self) -> None:
        """Wait for nobody."""
        self._since.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        limit_ms = self._settings.long(self._name)
        if limit_ms < 0 or not self._since:
            return
        left_ms = next(iter(self._since.values())) + limit_ms - self._now()
        self._timer = self._clock.call_at(self._clock.now_ms() + max(left_ms, 1), self._look)

    def _look(self) -> None:
        self._timer = None
        limit_ms = self._settings.long(self._name)
        while self._since and limit_ms >= 0:
            who, since_ms = next(iter(self._since.items()))
            if self._now() - since_ms < limit_ms:
                break
            del self._since[who]
            self._expire(who)
        self._arm()


class Connections(Generic[C]):
    """The connections of one broker. ``most`` is what the process has descriptors for."""

    def __init__(self, settings: BrokerSettings, clock: Clock, most: int) -> None:
        self._settings, self._clock, self._most = settings, clock, most
        self.open: dict[C, str] = {}
        self.held_bytes = 0
        self.idle = Silence[C](IDLE_TIMEOUT, settings, clock, lambda each: each.hang_up())
        self.partial = Silence[C](PARTIAL_TIMEOUT, settings, clock, _too_slow)
        self._waiting: deque[C] = deque()
        self._by_host: Counter[str] = Counter()
        self.throttle_ms: Callable[[str, int], int] | None = None
        """Host and time -> for how many ms a connection is left unread before it is closed (KIP-612)."""
        self._unwelcome: set[C] = set()
        self.budget_bytes = 0
        """How many bytes requests may take that are not being served yet."""
        settings.on_change(lambda _: self._set_budget())
        self._set_budget()

    def join(self, connection: C, host: str) -> bool:
        """Take in a connection from that host; false where it is to be closed at once.

        Above ``max.connections`` it waits, unread, until another one goes. Where the process has no descriptors left,
        the one that was silent for longest makes room. One that exceeds its address's quota counts for nothing else.
        """
        now_ms = self._clock.now_ms()
        if self.throttle_ms is not None and (throttle_ms := self.throttle_ms(host, now_ms)):
            self._unwelcome.add(connection)
            self._clock.call_at(now_ms + throttle_ms, connection.hang_up)
            return True
        self.open[connection] = host
        self._by_host[host] += 1
        if self._by_host[host] > self._limit_of(host):
            return False
        self.idle.heard(connection)
        if len(self.open) > self._most and (oldest := self.idle.longest()) is not None:
            oldest.refuse(f"{self._most} connections are open, and this one was silent for longest")
        if len(self.open) - len(self._waiting) > self._settings.int("max.connections"):
            self._waiting.append(connection)
        elif connection in self.open:
            connection.begin()
        return True

    def _limit_of(self, host: str) -> int:
        for override in self._settings.string("max.connections.per.ip.overrides").split(","):
            name, _, limit = override.strip().rpartition(":")
            if name == host:
                return int(limit)
        return self._settings.int("max.connections.per.ip")

    def leave(self, connection: C) -> None:
        """The connection is gone; one that waits may begin."""
        host = self.open.pop(connection, None)
        if host is None:
            self._unwelcome.discard(connection)
            return
        self.idle.forget(connection)
        self.partial.forget(connection)
        self._by_host[host] -= 1
        if not self._by_host[host]:
            del self._by_host[host]
        if connection in self._waiting:
            self._waiting.remove(connection)
        elif self._waiting and len(self.open) - len(self._waiting) < self._settings.int("max.connections"):
            self._waiting.popleft().begin()

    def hold(self, more_bytes: int) -> None:
        """Note that requests under way take more memory, or less; too much is paid for by who is slowest to finish."""
        self.held_bytes += more_bytes
        if more_bytes <= 0:
            return
        while self.held_bytes > self.budget_bytes and (slowest := self.partial.longest()) is not None:
            self.partial.forget(slowest)
            slowest.refuse(f"unfinished requests take {self.held_bytes} bytes, {self.budget_bytes} are allowed")

    def _set_budget(self) -> None:
        given = self._settings.long("queued.max.request.bytes")
        self.budget_bytes = DEFAULT_HELD_BYTES if given < 0 else given

    @property
    def roomy(self) -> bool:
        """Whether there is so much room that a large frame may have its buffer at once."""
        return self.held_bytes < min(self.budget_bytes // 4, ROOMY_BYTES)

    def close(self, *, reset: bool = False) -> None:
        """Close them all."""
        self._waiting.clear()
        for connection in [*self.open, *self._unwelcome]:
            connection.hang_up(reset=reset)
        self.idle.cancel()
        self.partial.cancel()


def _too_slow(connection: Held) -> None:
    connection.refuse("a request was begun and not finished in time")
