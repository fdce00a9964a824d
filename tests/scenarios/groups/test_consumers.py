"""Members of consumer groups and their epochs (groups KIP848-01 to KIP848-26, G.3)."""

from typing import Any
from uuid import UUID

import pytest

from protocol.apis import ApiKey
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.conftest import BrokerWith
from tests.scenarios.core.asking import created
from tests.scenarios.groups.consumers import (
    CONSUMER_SETTINGS,
    INTERVAL_MS,
    SESSION_MS,
    Consumer,
    described,
    listing,
    member_of,
    outcome,
    settled,
)
from tests.scenarios.groups.members import G, coordinated
from tests.server import Server
from tests.wire import Wire

GROUP_RESOURCE, SET = 32, 0


@pytest.fixture
def wire(consumers: Server) -> Wire:
    """A connection to the coordinator, with the topic foo of three partitions."""
    connection = coordinated(consumers)
    created(connection, "foo", 3)
    consumers.advance(100)  # a real coordinator sees a topic some milliseconds late
    return connection


def joined(wire: Wire, member_id: str = "m1", **fields: Any) -> Consumer:
    """A member that has joined."""
    member = Consumer(wire, member_id, **fields)
    assert int(member.join().error_code) == 0
    return member


def test_KIP848_01_02_03_join_and_stay(wire: Wire) -> None:
    """The first epoch is 2; a heartbeat with all fields is answered with the assignment."""
    member = Consumer(wire)
    answer = member.join()
    assert (outcome(answer), answer.heartbeat_interval_ms, answer.member_id) == ((0, 2, [0, 1, 2]), 5000, "m1")
    assert outcome(member.beat()) == (0, 2, None)
    assert outcome(member.full()) == (0, 2, [0, 1, 2])
    listed_group = listing(wire)
    assert listed_group is not None
    assert (listed_group.group_type, listed_group.protocol_type, listed_group.group_state) == (
        "consumer",
        "consumer",
        "Stable",
    )


def test_KIP848_04_who_makes_the_id(wire: Wire) -> None:
    """The member itself since v1, the coordinator before."""
    assert Consumer(wire, "").code(0, owned={}, rebalance_timeout_ms=1000, subscribed_topic_names=["foo"]) == 42
    answer = Consumer(wire, "").join(version=0)
    assert (outcome(answer), len(answer.member_id or "")) == ((0, 2, [0, 1, 2]), 22)


@pytest.mark.parametrize(
    "fields",
    [
        {"owned": None},
        {"owned": {UUID(int=5): [0]}},
        {"rebalance_timeout_ms": -1},
        {"subscribed_topic_names": None},
        {"member_id": " "},
        {"group_id": ""},
        {"instance_id": ""},
        {"rack_id": " "},
    ],
)
def test_KIP848_05_a_join_sets_all_fields(wire: Wire, fields: dict[str, Any]) -> None:
    """A joining heartbeat without one of its fields is INVALID_REQUEST (42)."""
    answer = Consumer(wire).join(**fields)
    assert (outcome(answer), answer.member_id) == ((42, 0, None), None)
    assert answer.error_message
    assert described(wire).error_code == 69


def test_KIP848_06_07_what_is_not_there(wire: Wire) -> None:
    """An unknown assignor is UNSUPPORTED_ASSIGNOR (112), a member of no group GROUP_ID_NOT_FOUND (69)."""
    member = Consumer(wire, assignor="sticky")
    assert int(member.join().error_code) == 112
    assert member.code(1) == member.code(3) == member.code(-1) == 69
    assert (member.code(-2), member.code(-3)) == (42, 42)


def test_KIP848_08_09_another_epoch(consumers: Server, wire: Wire) -> None:
    """A later one is unknown; the previous one is accepted again from a member that owns no more than its target."""
    first = joined(wire)
    assert (first.code(3), first.code(1)) == (110, 110)
    second = joined(wire, "m2")
    consumers.advance(INTERVAL_MS)
    settled(first, second)
    assert first.epoch == 3
    few = {topic: partitions[:1] for topic, partitions in (first.owned or {}).items()}
    assert outcome(first.beat(2, owned=few)) == (0, 3, None)
    assert first.code(2) == 110
    assert first.code(2, owned={topic: [0, 1, 2] for topic in few}) == 110


def test_KIP848_10_to_14_KIP848_36_partitions_change_hands(consumers: Server, wire: Wire) -> None:
    """The one gives up, confirms, and only then the other one has them."""
    topic = next(iter(joined(wire).owned or {}))
    first = Consumer(wire, epoch=2, owned={topic: [0, 1, 2]})
    consumers.advance(INTERVAL_MS)
    second = Consumer(wire, "m2")
    assert outcome(second.join()) == (0, 3, [])
    answer = first.beat(2, owned=first.owned)
    kept = first.partitions
    assert (outcome(answer), len(kept)) == ((0, 2, kept), 2)
    group = described(wire)
    one = member_of(group, "m1")
    target = [list(each.partitions) for each in one.target_assignment.topic_partitions]
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Reconciling", 3, 3)
    assert (one.member_epoch, target) == (2, [kept])
    assert [sorted(each.partitions) for each in one.assignment.topic_partitions] == [[0, 1, 2]]
    assert outcome(first.beat(2, owned={topic: [0, 1, 2]})) == (0, 2, None)
    assert outcome(first.beat(2)) == (0, 2, None)
    assert outcome(second.beat(3)) == (0, 3, None)
    assert outcome(first.beat(2, owned={topic: kept})) == (0, 3, None)
    assert outcome(second.beat(3)) == (0, 3, sorted({0, 1, 2} - set(kept)))
    assert described(wire).group_state == "Stable"


def test_KIP848_15_who_gives_nothing_up_is_out(consumers: Server, wire: Wire) -> None:
    """A member that revokes nothing is removed after its own rebalance timeout."""
    first = joined(wire, rebalance_ms=2_000)
    consumers.advance(INTERVAL_MS)
    second = joined(wire, "m2")
    assert len(Consumer.beat(first).assignment.topic_partitions[0].partitions) == 2  # type: ignore[union-attr]
    consumers.advance(2_000)
    consumers.advance(INTERVAL_MS)
    assert first.code() == 25
    settled(second)
    assert second.owns == (4, [0, 1, 2])


def test_KIP848_16_assignments_take_turns(consumers: Server, wire: Wire) -> None:
    """A group computes at most one new assignment in a second."""
    first = joined(wire)
    second = Consumer(wire, "m2")
    assert outcome(second.join()) == (0, 2, [])
    assert described(wire).group_state == "Assigning"
    consumers.advance(INTERVAL_MS)
    assert outcome(second.beat()) == (0, 3, None)
    assert outcome(first.beat(owned=first.owned))[:2] == (0, 2)


def test_KIP848_17_a_group_has_its_own_interval(wire: Wire) -> None:
    """With an assignment interval of 0 ms for the group, each join bumps its epoch and target at once."""
    config = AlterableConfig("consumer.assignment.interval.ms", SET, "0")
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(GROUP_RESOURCE, G, [config])])
    assert wire.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request).responses[0].error_code == 0
    joined(wire)
    assert outcome(Consumer(wire, "m2").join()) == (0, 3, [])


def test_KIP848_18_silence(consumers: Server, wire: Wire) -> None:
    """A member without a heartbeat within its session timeout is removed, and the group epoch bumped."""
    first = joined(wire)
    joined(wire, "m2")
    consumers.advance(SESSION_MS - 1)
    assert first.code() == 0
    consumers.advance(SESSION_MS - 1)
    before = described(wire).group_epoch
    consumers.advance(1_000)
    assert (before, first.code()) == (4, 25)
    assert (described(wire).group_state, described(wire).group_epoch) == ("Empty", 5)


def test_KIP848_19_leaving(wire: Wire) -> None:
    """The answer has no assignment, and an interval of 0."""
    member = joined(wire)
    answer = member.leave()
    assert (outcome(answer), answer.member_id, answer.heartbeat_interval_ms) == ((0, -1, None), "m1", 0)
    group = described(wire)
    assert (group.group_state, group.group_epoch, list(group.members)) == ("Empty", 3, [])
    assert Consumer(wire, epoch=2).code() == 25


def test_KIP848_20_joining_again_confirms(consumers: Server, wire: Wire) -> None:
    """A member that joins again owns nothing any more."""
    first = joined(wire)
    consumers.advance(INTERVAL_MS)
    joined(wire, "m2")
    assert first.beat(owned=first.owned).member_epoch == 2
    kept = first.partitions
    assert outcome(first.join()) == (0, 3, kept)


def test_KIP848_21_to_23_static_members(consumers: Server, wire: Wire) -> None:
    """One leaves for a while; another process takes its place, and the other members do not notice."""
    first = joined(wire, instance_id="i1")
    consumers.advance(INTERVAL_MS)
    other = joined(wire, "m2")
    settled(first, other)
    intruder = Consumer(wire, "m3", instance_id="i1")
    assert (int(intruder.join().error_code), int(first.join().error_code)) == (111, 111)
    before, mine = described(wire).group_epoch, first.partitions
    answer = first.leave(-2)
    assert (outcome(answer), answer.member_id) == ((0, -2, None), "m1")
    assert outcome(other.keeps_up())[:2] == (0, 3)
    assert described(wire).group_state == "Reconciling"
    assert outcome(intruder.join()) == (0, 3, mine)
    group = described(wire)
    assert (group.group_epoch, group.group_state) == (before, "Stable")
    assert first.code(3) == 82


def test_KIP848_24_a_static_member_stays_away(consumers: Server, wire: Wire) -> None:
    """A static member that is away keeps its partitions for a session."""
    first = joined(wire, instance_id="i1")
    first.leave(-2)
    consumers.advance(SESSION_MS + 500)
    group = described(wire)
    assert (group.group_state, group.group_epoch) == ("Empty", 3)


def test_KIP848_25_instances(wire: Wire) -> None:
    """Unknown ones, and those of others."""
    member = joined(wire, instance_id="i1")
    assert (member.code(instance_id="i2"), member.code(member_id="m2")) == (25, 82)
    assert (member.code(-1, instance_id="i2"), member.code(-1, member_id="m2")) == (25, 82)


def test_KIP848_26_a_full_group_accepts_no_other_member(broker_with: BrokerWith) -> None:
    """A static member's own id is known, and its instance too since 4.4."""
    server = broker_with(settings={**CONSUMER_SETTINGS, "group.consumer.max.size": 1})
    wire = coordinated(server)
    created(wire, "foo", 3)
    server.advance(100)
    member = joined(wire, instance_id="i1")
    assert int(Consumer(wire, "m2").join().error_code) == 81
    member.leave(-2)
    assert outcome(member.join()) == (0, 2, [0, 1, 2])
    member.leave(-2)
    listed = wire.call(ApiKey.API_VERSIONS, 0, ApiVersionsRequest()).api_keys
    newest = max(each.max_version for each in listed if each.api_key == ApiKey.API_VERSIONS)
    assert int(Consumer(wire, "m2", instance_id="i1").join().error_code) == (81 if newest < 5 else 0)
