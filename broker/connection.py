"""A client's connection between its requests: who it is, what was agreed with it, and who waits for its end."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from broker.clock import Clock, Waiter
from broker.releases import DEFAULT, Release
from broker.releases import release as release_named
from broker.security.authorizer import ANONYMOUS
from broker.security.sasl_gate import Gate

Versions = Mapping[int, tuple[int, int] | None]
"""API key -> the versions that steering lets clients use instead of those that the API has; ``None``: none at all."""
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
    """Its authentication; ``None`` on listeners without SASL."""
    software_name: str = "unknown"
    software_version: str = "unknown"
    throttled_until_ms: int = 0
    lost: bool = False
    number: int = 0
    """Of this connection in the journal, which gives it one with the first request."""
    era: int = 0
    """The journal's era at the first request: connections of an earlier one have outlived a reset."""
    first_at_ms: int = 0
    """The cluster's time of the first request."""
    begun: bool = False
    """Whether it has sent a request: :meth:`begin` was called."""
    versions: Versions = field(default_factory=lambda: AS_EVER)
    """As of the connection's first request."""
    release: Release = field(default_factory=lambda: release_named(DEFAULT))
    """The release that the broker emulates on this connection, as of its first request."""
    unserved: int = 0
    """Requests that had arrived and were not served yet when the peer was lost."""
    refused: bool = False
    """Whether the broker closes it for what it sent."""
    hang_up: Callable[[], None] | None = None
    """Closes it from our side, behind what is written; ``None`` outside a server."""
    at_end: Callable[[], None] | None = None
    """Called once, when everything that came on it is served and nothing more will be."""
    _watchers: dict[Callable[[], None], None] | None = None
    _muted: Waiter | None = None

    def begin(self, versions: Versions, release: Release, gate: Gate | None) -> None:
        """The first request has come: what is fixed for the connection's life from then on."""
        self.begun, self.versions, self.release, self.gate = True, versions, release, gate

    def watch(self, call: Callable[[], None]) -> None:
        """Call when the peer is gone, and there is nothing to wait for any more."""
        if self._watchers is None:  # most connections never wait, and the journal keeps many
            self._watchers = {}  # in order
        self._watchers[call] = None

    def watch_end(self, call: Callable[[bool], None]) -> None:
        """Call when the connection ends, with whether the broker has closed it for what it sent."""
        self.watch(lambda: call(self.refused))

    def unwatch(self, call: Callable[[], None]) -> None:
        """Call no more."""
        if self._watchers is not None:
            self._watchers.pop(call, None)

    def lose(self) -> None:
        """The peer is gone."""
        self.lost = True
        self.hang_up = None  # the journal keeps this object; what the connection has read must not stay with it
        for call in tuple(self._watchers or ()):
            call()

    async def wait_throttled(self, clock: Clock) -> None:
        """Return when the throttle time is over, the peer is gone, or throttling is lifted."""
        self._muted = waiter = Waiter()
        self.watch(waiter.wake)
        try:
            if not self.lost:
                await waiter.wait(clock, self.throttled_until_ms)
        finally:
            self.unwatch(waiter.wake)
            self._muted, self.throttled_until_ms = None, 0

    def end_throttling(self) -> None:
        """Stop waiting out the throttle time (reset)."""
        self.throttled_until_ms = 0
        if self._muted is not None:
            self._muted.wake()
