"""What consumer groups read, by name and by regular expression (groups KIP848-27 to KIP848-36, G.3)."""

import pytest

from protocol.apis import ApiKey
from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.scenarios.core.asking import created
from tests.scenarios.groups.consumers import INTERVAL_MS, Consumer, described, member_of, outcome, settled
from tests.scenarios.groups.members import coordinated
from tests.server import Server, until
from tests.wire import Wire

FOLLOWED_MS = 100
"""A real coordinator sees what has become of a topic some milliseconds late."""
BETWEEN_REFRESHES_MS = 10_000


@pytest.fixture
def wire(consumers: Server) -> Wire:
    """A connection to the coordinator, with the topic foo of three partitions."""
    connection = coordinated(consumers)
    created(connection, "foo", 3)
    consumers.advance(FOLLOWED_MS)
    return connection


def by_regex(wire: Wire, regex: str, **fields: object) -> Consumer:
    """A member that has joined with a regular expression alone."""
    member = Consumer(wire, topics=None, regex=regex)
    assert int(member.join(**fields).error_code) == 0
    return member


def follows(member: Consumer, epoch: int) -> list[int]:
    """The member's partitions of all its topics once it is in that epoch."""

    def there() -> bool | None:
        member.keeps_up()
        return member.epoch == epoch or None

    until(there, f"epoch {epoch}")
    return sorted(at for partitions in (member.owned or {}).values() for at in partitions)


def test_KIP848_27_a_regular_expression(wire: Wire) -> None:
    """The first answer has nothing yet; internal topics are candidates too."""
    member = Consumer(wire, topics=None, regex="fo.*")
    assert outcome(member.join()) == (0, 1, [])
    assert described(wire).group_epoch in (1, 2)
    assert follows(member, 2) == [0, 1, 2]
    one = member_of(described(wire), "m1")
    assert (list(one.subscribed_topic_names), one.subscribed_topic_regex) == ([], "fo.*")
    assert member_of(described(wire, version=0), "m1").member_type == -1
    assert one.member_type == 1


def test_KIP848_28_no_regular_expression(wire: Wire) -> None:
    """Nothing has changed then; nor does RE2 look around or back."""
    for regex in ("[", "(?=f)oo", r"(o)\1"):
        assert int(Consumer(wire, topics=None, regex=regex).join().error_code) == 128
    assert described(wire).error_code == 69
    member = by_regex(wire, "foo")
    assert member.code(subscribed_topic_regex="[") == 128
    assert member_of(described(wire), "m1").subscribed_topic_regex == "foo"


def test_KIP848_29_the_whole_name(consumers: Server, wire: Wire) -> None:
    """A subscribed expression has to match a topic's whole name."""
    created(wire, "foobar", 5)
    consumers.advance(FOLLOWED_MS)
    assert follows(by_regex(wire, "foo"), 2) == [0, 1, 2]


def test_KIP848_30_a_new_topic_matches(consumers: Server, wire: Wire) -> None:
    """It is found when the last look is ten seconds old."""
    member = by_regex(wire, "foo.*")
    assert len(follows(member, 2)) == 3
    created(wire, "fooz", 1)
    consumers.advance(FOLLOWED_MS)
    assert outcome(member.keeps_up())[:2] == (0, 2)
    consumers.advance(BETWEEN_REFRESHES_MS // 2)
    member.keeps_up()
    consumers.advance(BETWEEN_REFRESHES_MS // 2)
    assert sorted(follows(member, 3)) == [0, 0, 1, 2]


def test_a_name_and_a_regular_expression(consumers: Server, wire: Wire) -> None:
    """Both count; dropping the expression is a change at once."""
    created(wire, "bar", 1)
    consumers.advance(FOLLOWED_MS)
    member = Consumer(wire, topics=["bar"], regex="fo+")
    assert outcome(member.join()) == (0, 2, [0])
    consumers.advance(INTERVAL_MS)
    assert follows(member, 3) == [0, 0, 1, 2]
    consumers.advance(INTERVAL_MS)
    assert outcome(member.beat(subscribed_topic_regex=""))[:2] == (0, 3)
    assert follows(member, 4) == [0]


def test_KIP848_31_more_partitions(consumers: Server, wire: Wire) -> None:
    """The next heartbeat assigns partitions that were added to a topic."""
    member = Consumer(wire)
    member.join()
    request = CreatePartitionsRequest([CreatePartitionsTopic("foo", 5, None)], 5000)
    assert wire.call(ApiKey.CREATE_PARTITIONS, 3, request).results[0].error_code == 0
    consumers.advance(FOLLOWED_MS + INTERVAL_MS)
    assert outcome(member.beat()) == (0, 3, [0, 1, 2, 3, 4])


def test_KIP848_32_a_deleted_topic(consumers: Server, wire: Wire) -> None:
    """Partitions of a deleted topic are revoked like any others."""
    member = Consumer(wire)
    member.join()
    request = DeleteTopicsRequest(topics=[DeleteTopicState("foo")], timeout_ms=5000)
    assert wire.call(ApiKey.DELETE_TOPICS, 6, request).responses[0].error_code == 0
    consumers.advance(FOLLOWED_MS + INTERVAL_MS)
    assert outcome(member.beat(owned=member.owned)) == (0, 2, [])
    assert described(wire).group_epoch == 3
    assert outcome(member.beat(owned={})) == (0, 3, None)


def test_KIP848_33_another_subscription(consumers: Server, wire: Wire) -> None:
    """What it does not read any more it gives up first."""
    bar = created(wire, "bar", 2)
    member = Consumer(wire)
    member.join()
    consumers.advance(FOLLOWED_MS + INTERVAL_MS)
    assert outcome(member.beat(owned=member.owned, subscribed_topic_names=["bar"])) == (0, 2, [])
    assert outcome(member.beat(owned={})) == (0, 3, [0, 1])
    assert member.owned == {bar: [0, 1]}


def test_a_subscription_that_shrinks_before_there_is_a_target(wire: Wire) -> None:
    """Within the interval: what is read no more goes at once."""
    member = Consumer(wire)
    member.join()
    assert outcome(member.beat(owned=member.owned, subscribed_topic_names=[])) == (0, 2, [])
    assert described(wire).group_epoch == 3
    group = described(wire)
    assert (group.group_state, group.assignment_epoch) == ("Assigning", 2)


def test_a_join_for_topics_that_are_not_there(consumers: Server, wire: Wire) -> None:
    """Has an epoch, and gets them when they come."""
    member = Consumer(wire, topics=["bar"])
    assert outcome(member.join()) == (0, 2, [])
    created(wire, "bar", 2)
    consumers.advance(FOLLOWED_MS + INTERVAL_MS)
    assert outcome(member.beat()) == (0, 3, [0, 1])


def test_a_join_for_nothing(wire: Wire) -> None:
    """Is no change of the group's epoch."""
    assert outcome(Consumer(wire, topics=[]).join()) == (0, 1, [])
    assert outcome(Consumer(wire, "m2", topics=None, regex="").join()) == (0, 1, [])


def test_KIP848_34_most_members_choose_the_assignor(consumers: Server, wire: Wire) -> None:
    """A third member with another assignor changes nothing."""
    members = [Consumer(wire, f"m{n}", assignor=name) for n, name in enumerate(["range", "range", "uniform"])]
    for member in members:
        member.join()
        consumers.advance(INTERVAL_MS)
        assert described(wire).assignor_name == "range"
    settled(*members)
    assert sorted(member.partitions for member in members) == [[0], [1], [2]]
    members[2].leave()
    assert described(wire).assignor_name == "range"


def test_KIP848_35_ranges_and_shares(consumers: Server, wire: Wire) -> None:
    """Range: first come the static ones; uniform: as Kafka's tables iterate."""
    created(wire, "five", 5)
    consumers.advance(FOLLOWED_MS)
    ranged = [Consumer(wire, name, "ranged", instance, ["five"], assignor="range")
              for name, instance in (("A", None), ("B", "i2"), ("C", "i1"))]  # fmt: skip
    for member in ranged:
        member.join()
    consumers.advance(INTERVAL_MS)
    settled(*ranged)
    assert [member.partitions for member in ranged] == [[4], [2, 3], [0, 1]]
    created(wire, "ten", 10)
    consumers.advance(FOLLOWED_MS)
    ids = (
        "6b1d1b8e-2f0c-4c5b-9d57-0a5f3b1f7c01",
        "0f3c2d1a-7a41-4a7e-8f2e-5f0d9c6e2b02",
        "c1e7a9d4-54b3-4e0d-b8a9-3d2f6a7b8c03",
    )
    shared = [Consumer(wire, name, "shared", topics=["ten"]) for name in ids]
    for member in shared:
        member.join()
        consumers.advance(INTERVAL_MS)
        member.beat()
    settled(*shared)
    assert [member.partitions for member in shared] == [[0, 1, 2, 3], [5, 6, 7], [4, 8, 9]]
