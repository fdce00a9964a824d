"""A client's connection between its requests: principal, versions, throttling, and watchers of its end."""

from collections.abc import Callable, Mapping
from dataclasses import field

from broker.access.authorizer import ANONYMOUS
from broker.request.sasl_gate import Gate
from broker.settings.releases import DEFAULT, Release
from broker.settings.releases import release as release_named
from broker.time.clock import Clock, Waiter
from protocol.deferred import dataclass

Versions = Mapping[int, tuple[int, int] | None]
"""API key -> the versions served on this connection instead of the API's own; ``None``: the API is not served."""
AS_EVER: Versions = {}


@dataclass(slots=True)
class Connection:
    """The state of a connection between its requests."""

    id: str
    listener: str
    client_host: str
    client_port: int
    principal: str = ANONYMOUS
    gate: Gate | None = None
    """Its SASL authentication; ``None`` on listeners without SASL."""
    software_name: str = "unknown"
    software_version: str = "unknown"
    throttled_until_ms: int = 0
    lost: bool = False
    number: int = 0
    """This connection's number in the journal, assigned at the first request."""
    era: int = 0
    """The journal's era at the first request: a connection of an earlier era has outlived a reset."""
    first_at_ms: int = 0
    """The cluster's time of the first request."""
    has_waited: bool = False
    """Whether a Fetch has waited on it for records."""
    begun: bool = False
    """Whether it has sent a request, that is, :meth:`begin` was called."""
    versions: Versions = field(default_factory=lambda: AS_EVER)
    """Fixed at the connection's first request."""
    release: Release = field(default_factory=lambda: release_named(DEFAULT))
    """The release that the broker emulates on this connection, fixed at its first request."""
    unserved: int = 0
    """Requests that had arrived but were not served when the peer disconnected."""
    refused: bool = False
    """Whether the broker closes it because of what it sent."""
    hang_up: Callable[[], None] | None = None
    """Closes it from the broker's side, after what is written; ``None`` outside a server."""
    at_end: Callable[[], None] | None = None
    """Called once, when every request that arrived on it is served and no more will be."""
    _watchers: dict[Callable[[], None], None] | None = None
    _muted: Waiter | None = None

    def begin(self, versions: Versions, release: Release, gate: Gate | None) -> None:
        """Fix what the first request decides for the life of the connection."""
        self.begun, self.versions, self.release, self.gate = True, versions, release, gate

    def watch(self, call: Callable[[], None]) -> None:
        """Call when the peer has disconnected, so that nothing needs to wait for it."""
        if self._watchers is None:  # most connections never wait, and the journal keeps many
            self._watchers = {}  # keeps the order of registration
        self._watchers[call] = None

    def watch_end(self, call: Callable[[bool], None]) -> None:
        """Call when the connection ends; the argument is whether the broker closed it because of what it sent."""
        self.watch(lambda: call(self.refused))

    def unwatch(self, call: Callable[[], None]) -> None:
        """Stop calling."""
        if self._watchers is not None:
            self._watchers.pop(call, None)

    def lose(self) -> None:
        """Note that the peer has disconnected, and call the watchers."""
        self.lost = True
        self.hang_up = None  # the journal keeps this object, which must not hold the connection's buffers
        for call in tuple(self._watchers or ()):
            call()

    async def wait_throttled(self, clock: Clock) -> None:
        """Return when the throttle time is over, the peer has disconnected, or throttling is lifted."""
        self._muted = waiter = Waiter()
        self.watch(waiter.wake)
        try:
            if not self.lost:
                await waiter.wait(clock, self.throttled_until_ms)
        finally:
            self.unwatch(waiter.wake)
            self._muted, self.throttled_until_ms = None, 0

    def end_throttling(self) -> None:
        """Lift the throttling (reset)."""
        self.throttled_until_ms = 0
        if self._muted is not None:
            self._muted.wake()
