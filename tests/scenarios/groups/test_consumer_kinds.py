"""Groups that change their kind, restarts, and brokers without consumer groups (groups KIP848-38 to KIP848-46)."""

import pytest

from tests.conftest import BrokerWith
from tests.coordination.group.subscriptions import subscription
from tests.scenarios.conftest import LastingWith
from tests.scenarios.core.asking import created
from tests.scenarios.groups.consumers import (
    CONSUMER_SETTINGS,
    INTERVAL_MS,
    Consumer,
    described,
    listing,
    outcome,
    settled,
)
from tests.scenarios.groups.members import Member, commit, coordinated, offset_of
from tests.server import Server
from tests.wire import Wire


@pytest.fixture
def wire(consumers: Server) -> Wire:
    """A connection to the coordinator, with the topic foo of three partitions."""
    connection = coordinated(consumers)
    created(connection, "foo", 3)
    consumers.advance(100)
    return connection


def test_KIP848_38_an_empty_classic_group_becomes_another(wire: Wire) -> None:
    """With its offsets; and back again by a JoinGroup."""
    assert commit(wire, "foo", 5) == 0
    listed_group = listing(wire)
    assert listed_group is not None
    assert listed_group.group_type == "classic"
    member = Consumer(wire)
    assert outcome(member.join()) == (0, 2, [0, 1, 2])
    assert (offset_of(wire, "foo"), commit(wire, "foo", 6, 2, "m1")) == (5, 0)
    member.leave()
    Member(wire).start()
    assert wire.answer().error_code == 0
    listed_group = listing(wire)
    assert listed_group is not None
    assert (listed_group.group_type, listed_group.protocol_type, offset_of(wire, "foo")) == ("classic", "consumer", 6)


@pytest.mark.parametrize("why", ["policy", "type", "metadata"])
def test_KIP848_40_a_classic_group_that_stays_one(broker_with: BrokerWith, why: str) -> None:
    """Since the policy forbids it, or its protocol type is not consumer, or its members' metadata cannot be parsed."""
    policy = "DISABLED" if why == "policy" else "upgrade"
    server = broker_with(settings={**CONSUMER_SETTINGS, "group.consumer.migration.policy": policy})
    server.freeze()
    wire = coordinated(server)
    created(wire, "foo", 3)
    server.advance(100)
    metadata = b"meta" if why == "metadata" else subscription("foo")
    first = Member(wire, metadata, protocol_type="connect" if why == "type" else "consumer")
    first.start()
    server.advance(0)
    first.joined()
    answer = Consumer(coordinated(server)).join()
    assert (outcome(answer), answer.error_message is None) == ((69, 0, None), False)
    assert first.beat() == 0


def test_KIP848_45_a_coordinator_that_starts_again(lasting_with: LastingWith) -> None:
    """Continues where it was: members notice nothing."""
    lasting = lasting_with(CONSUMER_SETTINGS)
    wire = coordinated(lasting.server)
    created(wire, "foo", 3)
    lasting.server.advance(100)
    members = [Consumer(wire, name, instance_id=instance) for name, instance in (("m1", None), ("m2", "i"))]
    for member in members:
        member.join()
        lasting.server.advance(INTERVAL_MS)
    settled(*members)
    before = described(wire)
    wire = coordinated(lasting.restart())
    for member in members:
        member.wire = wire
        assert outcome(member.beat()) == (0, member.epoch, None)
    after = described(wire)
    assert (after.group_epoch, after.assignment_epoch, after.group_state) == (
        before.group_epoch,
        before.assignment_epoch,
        "Stable",
    )
    assert outcome(members[0].full()) == (0, members[0].epoch, members[0].partitions)


def test_KIP848_46_without_the_feature(broker_with: BrokerWith) -> None:
    """Without group.version the consumer group APIs get UNSUPPORTED_VERSION (35)."""
    wire = broker_with(features={"group.version": 0}, settings=CONSUMER_SETTINGS).wire()
    assert int(Consumer(wire).join().error_code) == 35
    assert int(described(wire).error_code) == 35


def test_without_the_protocol(broker_with: BrokerWith) -> None:
    """Also refused where the broker's settings allow the classic protocol only."""
    settings = {**CONSUMER_SETTINGS, "group.coordinator.rebalance.protocols": "classic"}
    wire = broker_with(settings=settings).wire()
    assert int(Consumer(wire).join().error_code) == 35
