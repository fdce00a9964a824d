"""The limits of a broker's listeners: how many connections each serves, and how many in a second (core A.4)."""

from dataclasses import dataclass

from broker.server.connections import Connections
from broker.settings import BrokerSettings
from broker.time.clock import ManualClock

TWO = {
    "listeners": "INTERNAL://:1,EXTERNAL://:2,CONTROLLER://:3",
    "listener.security.protocol.map": "INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "internal",
}


@dataclass(eq=False)
class Peer:
    """A connection as far as its limits go; it leaves when it is closed, as real ones do."""

    all: Connections["Peer"]
    begun: bool = False
    closed: bool = False

    def start(self) -> None:
        """Read and serve."""
        self.begun = True

    def hang_up(self, *, reset: bool = False) -> None:  # noqa: ARG002
        """Close."""
        self.closed = True
        self.all.leave(self)

    def refuse(self, reason: str) -> None:
        """Close, with a reason."""
        raise AssertionError(reason)


class Stage:
    """A broker's connections under some settings."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.settings, self.clock = BrokerSettings(1, settings), ManualClock()
        self.known: Connections[Peer] = Connections(self.settings, self.clock)

    def joined(self, listener: str, number: int = 1) -> list[Peer]:
        """More connections of a listener."""
        peers = [Peer(self.known) for _ in range(number)]
        for peer in peers:
            assert self.known.join(peer, "127.0.0.1", listener)
        return peers


def begun(peers: list[Peer]) -> int:
    """How many are served."""
    return sum(peer.begun for peer in peers)


def test_a_listener_may_have_a_limit_of_its_own() -> None:
    """Its connections wait for each other, and those of another listener do not (ListenerConnectionQuota)."""
    stage = Stage(TWO | {"listener.name.external.max.connections": "1"})
    outside, inside = stage.joined("EXTERNAL", 3), stage.joined("INTERNAL", 3)
    assert (begun(outside), begun(inside)) == (1, 3)
    outside[0].hang_up()
    assert [peer.begun for peer in outside] == [True, True, False]
    stage.settings.set_dynamic({}, {"listener.name.external.max.connections": "3"})
    assert begun(outside) == 3


def test_brokers_connect_beyond_the_brokers_limit() -> None:
    """In place of the connection of another listener that was idle for the longest time (protectedListener)."""
    stage = Stage(TWO | {"max.connections": "2"})
    outside = stage.joined("EXTERNAL", 3)
    inside = stage.joined("INTERNAL")
    assert [(peer.begun, peer.closed) for peer in outside] == [(True, True), (True, False), (False, False)]
    assert inside[0].begun
    inside += stage.joined("INTERNAL", 2)
    assert [peer.begun for peer in inside] == [True, True, False]  # the limit of each listener is 2 as well
    assert outside[1].closed
    inside[0].hang_up()
    assert (begun(inside), outside[2].begun) == (3, False)


def test_a_listener_between_brokers_that_is_the_only_one_has_the_brokers_limit() -> None:
    """The controller's does not count, since it has connections of its own."""
    stage = Stage({"listeners": "PLAINTEXT://:1,CONTROLLER://:2", "max.connections": "1"})
    assert begun(stage.joined("PLAINTEXT", 2)) == 1


def test_connections_are_accepted_at_the_brokers_rate() -> None:
    """Above it one waits unread, and the listener's others behind it (max.connection.creation.rate)."""
    stage = Stage(TWO | {"max.connection.creation.rate": "1", "quota.window.num": "2"})
    outside = stage.joined("EXTERNAL", 4)
    assert begun(outside) == 1
    stage.clock.advance(1000)
    assert begun(outside) == 2
    stage.clock.advance(3000)
    assert begun(outside) == 4


def test_a_listener_may_have_a_rate_of_its_own() -> None:
    """A listener at its own connection rate keeps no other listener from accepting."""
    stage = Stage(TWO | {"listener.name.external.max.connection.creation.rate": "1", "quota.window.num": "2"})
    assert begun(stage.joined("EXTERNAL", 3)) == 1
    assert begun(stage.joined("INTERNAL", 9)) == 9


def test_brokers_are_not_counted_in_the_brokers_rate() -> None:
    """They have the rate of their listener alone, whose default is the broker's."""
    stage = Stage(
        TWO
        | {"listener.name.internal.max.connection.creation.rate": "100"}
        | {"max.connection.creation.rate": "1", "quota.window.num": "2"}
    )
    assert begun(stage.joined("INTERNAL", 9)) == 9
    assert begun(stage.joined("EXTERNAL", 1)) == 1


def test_one_that_leaves_before_its_turn_does_not_delay_the_next() -> None:
    """Nor does a rate of 0, with which a broker accepts one connection in a window."""
    stage = Stage({"max.connection.creation.rate": "0"})
    first, second = stage.joined("PLAINTEXT", 2)
    first.hang_up()
    stage.clock.advance(1000)
    assert (first.begun, second.begun) == (False, True)
    stage.known.close()
