"""The limits of connections, without sockets: who joins, who waits, who is given up, what they may make us hold."""

from dataclasses import dataclass, field

import pytest

from broker.server.connections import CONNECTION_BYTES, ROOMY_BYTES, Connections, IdleTimeouts
from broker.settings import BrokerSettings
from broker.time.clock import Clock, ManualClock

HERE, THERE = "127.0.0.1", "127.0.0.2"


@dataclass(eq=False)
class Peer:
    """A connection as far as its limits go; it leaves when it is closed, as real ones do."""

    all: Connections["Peer"] | None = None
    begun: bool = False
    closed: bool = False
    reasons: list[str] = field(default_factory=list)

    def start(self) -> None:
        """Read and serve."""
        self.begun = True

    def hang_up(self, *, reset: bool = False) -> None:  # noqa: ARG002
        """Close."""
        self.closed = True
        if self.all is not None:
            self.all.leave(self)

    def refuse(self, reason: str) -> None:
        """Close, with a reason."""
        self.reasons.append(reason)
        self.hang_up()


class SteeredClock:
    """A clock that was pushed: the machine's time stays behind the cluster's."""

    def __init__(self) -> None:
        clock = ManualClock()
        self.now_ms, self.call_at, self.note_work, self.advance = (
            clock.now_ms,
            clock.call_at,
            clock.note_work,
            clock.advance,
        )
        self.poll_deadline_ms = clock.poll_deadline_ms
        self.pushed_ms = 0

    def machine_ms(self) -> int:
        """Without what was pushed."""
        return self.now_ms() - self.pushed_ms

    def push(self, ms: int) -> None:
        """Move the cluster's time alone."""
        self.pushed_ms += ms
        self.advance(ms)


def connections(clock: Clock | None = None, *, most: int = 1000, **settings: object) -> Connections[Peer]:
    """A broker's connections; settings are written with ``_`` for the dots."""
    texts = {name.replace("_", "."): str(value) for name, value in settings.items()}
    return Connections(BrokerSettings(1, texts), clock or ManualClock(), most)


def joined(known: Connections[Peer], host: str = HERE) -> Peer:
    """One more connection."""
    peer = Peer(known)
    if not known.join(peer, host):
        peer.hang_up()
    return peer


# --- how many --------------------------------------------------------------------------------------------------------


def test_a_host_has_its_limit() -> None:
    """One more is closed at once; others have theirs (core CON-14)."""
    known = connections(max_connections_per_ip=2)
    peers = [joined(known) for _ in range(3)]
    assert [peer.closed for peer in peers] == [False, False, True]
    assert not joined(known, THERE).closed
    peers[0].hang_up()
    assert not joined(known).closed


def test_a_host_may_have_a_limit_of_its_own() -> None:
    """`max.connections.per.ip.overrides` replaces the limit for the addresses that it names, and for no other."""
    known = connections(max_connections_per_ip=1, max_connections_per_ip_overrides=f"{THERE}:2, 10.0.0.1:7")
    assert [joined(known, THERE).closed for _ in range(3)] == [False, False, True]
    assert [joined(known, HERE).closed for _ in range(2)] == [False, True]


def test_a_limit_of_its_own_may_be_given_to_a_hosts_name() -> None:
    """It is looked up once; an address may be written in any way (InetAddress.getByName)."""
    known = connections(max_connections_per_ip_overrides="localhost:1,0:0:0:0:0:0:0:1:2,no..name:3")
    assert [joined(known, "127.0.0.1").closed for _ in range(2)] == [False, True]
    assert [joined(known, "::1").closed for _ in range(3)] == [False, False, True]


def test_above_the_brokers_limit_one_waits_unread() -> None:
    """In the order of arrival, until another one leaves (core A.4)."""
    known = connections(max_connections=1)
    first, second, third = (joined(known) for _ in range(3))
    assert (first.begun, second.begun, third.begun) == (True, False, False)
    first.hang_up()
    assert (second.begun, third.begun) == (True, False)


def test_a_limit_that_is_raised_lets_those_begin_that_wait() -> None:
    """As many as it allows, at once (ConnectionQuotas.updateBrokerMaxConnections)."""
    settings = BrokerSettings(1, {"max.connections": "1"})
    known: Connections[Peer] = Connections(settings, ManualClock())
    peers = [joined(known) for _ in range(4)]
    settings.set_dynamic({"max.connections": "3"}, {})
    assert [peer.begun for peer in peers] == [True, True, True, False]


def test_a_limit_that_is_lowered_closes_those_that_were_silent_for_longest() -> None:
    """As many as are too many; those that wait go on waiting (Processor.closeExcessConnections)."""
    settings, clock = BrokerSettings(1, {"max.connections": "4"}), ManualClock()
    known: Connections[Peer] = Connections(settings, clock)
    peers = [joined(known) for _ in range(5)]
    clock.advance(10)
    known.idle.touch(peers[0])
    settings.set_dynamic({"max.connections": "2"}, {})
    assert [peer.closed for peer in peers] == [False, True, True, False, False]
    assert not peers[4].begun
    peers[0].hang_up()
    assert peers[4].begun


def test_who_leaves_while_waiting_is_not_begun() -> None:
    """A connection that is lost while it waits for a place is skipped, and the next one begins."""
    known = connections(max_connections=1)
    first, second, third = (joined(known) for _ in range(3))
    second.hang_up()
    first.hang_up()
    assert (second.begun, third.begun) == (False, True)


def test_without_descriptors_the_most_silent_is_closed() -> None:
    """Not the one that came first, if it sent something since."""
    clock = ManualClock()
    known = connections(clock, most=2)
    first, second = joined(known), joined(known)
    clock.advance(10)
    known.idle.touch(first)
    third = joined(known)
    assert (first.closed, second.closed, third.begun) == (False, True, True)
    assert second.reasons == ["2 connections are open, and this one was idle for the longest time"]


def test_leaving_twice_counts_once() -> None:
    """A connection that is hung up is lost afterwards."""
    known = connections(max_connections_per_ip=1)
    peer = joined(known)
    known.leave(peer)
    known.leave(peer)
    assert not joined(known).closed
    assert joined(known).closed


def test_a_connection_that_is_gone_counts_as_freed_memory_once() -> None:
    """So that the heap is trimmed after a crowd has left; one that was never counted frees nothing."""
    known = connections()
    freed: list[int] = []
    known.on_freed = freed.append
    peer = joined(known)
    assert freed == []
    known.leave(peer)
    known.leave(peer)
    assert freed == [CONNECTION_BYTES]


def test_closing_closes_all() -> None:
    """Those that wait too; none is begun in their place."""
    known = connections(max_connections=1)
    peers = [joined(known) for _ in range(3)]
    known.close()
    assert all(peer.closed for peer in peers)
    assert [peer.begun for peer in peers] == [True, False, False]


# --- for how long ----------------------------------------------------------------------------------------------------


def test_silence_is_measured_for_each() -> None:
    """Who speaks in time stays (core CON-13)."""
    clock = ManualClock()
    known = connections(clock, connections_max_idle_ms=1000)
    silent, talking = joined(known), joined(known)
    clock.advance(900)
    known.idle.touch(talking)
    clock.advance(99)
    assert not silent.closed
    clock.advance(1)
    assert (silent.closed, talking.closed) == (True, False)
    clock.advance(900)
    assert talking.closed


def test_a_negative_limit_is_none() -> None:
    """connections.max.idle.ms=-1 closes no idle connection."""
    clock = ManualClock()
    known = connections(clock, connections_max_idle_ms=-1)
    peer = joined(known)
    clock.advance(10**12)
    assert not peer.closed


@pytest.mark.parametrize(("is_set", "closed"), [(False, False), (True, True)])
def test_pushed_time_is_silence_only_where_that_was_asked_for(is_set: bool, closed: bool) -> None:
    """A test that pushes a quarter of an hour to see a transaction expire keeps its clients."""
    clock = SteeredClock()
    known = connections(clock, **({"connections_max_idle_ms": 600_000} if is_set else {}))
    peer = joined(known)
    clock.push(900_000)
    assert peer.closed is closed
    clock.advance(600_000)
    assert peer.closed


def test_a_frame_that_does_not_arrive_is_given_up() -> None:
    """The deadline is its own, and ends with the frame (conformance 4 B44)."""
    clock = ManualClock()
    known = connections(clock, understudy_partial_frame_timeout_ms=1000)
    stalled, finished = joined(known), joined(known)
    known.partial.touch(stalled)
    known.partial.touch(finished)
    clock.advance(500)
    known.partial.forget(finished)
    clock.advance(500)
    assert (stalled.closed, finished.closed) == (True, False)
    assert stalled.reasons == ["a request or a TLS handshake was not completed in time"]


def test_no_idle_timer_fires_after_the_end() -> None:
    """A broker that closes fires nothing any more."""
    clock = ManualClock()
    expired: list[Peer] = []
    silence: IdleTimeouts[Peer] = IdleTimeouts("connections.max.idle.ms", BrokerSettings(1), clock, expired.append)
    silence.touch(Peer())
    silence.clear()
    clock.advance(10**9)
    assert expired == []


# --- how much --------------------------------------------------------------------------------------------------------


def test_too_much_is_paid_for_by_who_is_slowest() -> None:
    """The one whose unfinished frame has not grown for longest."""
    clock = ManualClock()
    known = connections(clock, queued_max_request_bytes=100)
    slow, quick = joined(known), joined(known)
    known.partial.touch(slow)
    clock.advance(1)
    known.partial.touch(quick)
    known.account(60)
    assert not slow.closed
    known.account(60)
    assert (slow.closed, quick.closed) == (True, True)  # neither gave anything back
    assert slow.reasons == ["incomplete requests take 120 bytes, 100 are allowed"]


def test_what_is_given_back_can_be_held_again() -> None:
    """Requests that were served are accounted for no more."""
    known = connections(queued_max_request_bytes=100)
    peer = joined(known)
    for _ in range(10):
        known.account(90)
        known.account(-90)
    known.account(1000)
    assert not peer.closed
    assert known.held_bytes == 1000


def test_large_buffers_are_granted_as_long_as_little_is_held() -> None:
    """Such a frame may have its buffer before it has arrived."""
    known = connections()
    assert known.roomy
    known.account(ROOMY_BYTES)
    assert not known.roomy


def test_a_handshake_counts_for_two() -> None:
    """It holds a second descriptor, to send an alert after its end: half-open ones must not take those of all."""
    known = connections(most=4)
    first, second = joined(known), joined(known)
    known.spares = 2
    third = joined(known)
    assert [peer.closed for peer in (first, second, third)] == [True, False, False]
    assert first.reasons == ["4 connections are open, and this one was idle for the longest time"]
