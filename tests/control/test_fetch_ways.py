"""The ways in which a Fetch brings no records: each has a hint in the report (docs/troubleshooting.md)."""

from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.control.conftest import ControlPlaneOf
from tests.control.harness import ControlPlane
from tests.control.test_group_ways import check
from tests.scenarios.core.asking import metadata
from tests.scenarios.groups.members import SETTINGS, commit, coordinated, offset_of
from tests.scenarios.groups.sharers import SHARE_SETTINGS, SHARES, Sharer
from tests.serving import until
from tests.wire import Wire

E = ErrorCode
NAMES_VERSION, IDS_VERSION = 12, 16


def fetch(
    plane: ControlPlane,
    offset: int,
    *,
    broker: int = 1,
    version: int = IDS_VERSION,
    isolation_level: int = 0,
    index: int = 0,
) -> ErrorCode:
    """One Fetch of t-0, or another partition, by name or by id; its error."""
    wire: Wire = plane.server.wire(broker)
    (topic,) = metadata(wire, "t")
    fetch_topic = FetchTopic("t", [FetchPartition(index, offset, 1 << 20)], topic_id=topic.topic_id)
    request = FetchRequest(max_wait_ms=0, session_epoch=-1, topics=[fetch_topic], isolation_level=isolation_level)
    response = wire.call(ApiKey.FETCH, version, request)
    code: ErrorCode = response.responses[0].partitions[0].error_code if response.responses else response.error_code
    return code


def write(plane: ControlPlane, count: int = 2) -> None:
    """Write records to t-0, each as a batch of its own."""
    for _ in range(count):
        plane.kafka.topics["t"].write({"value": "v", "partition": 0})


def removed_by_retention(plane: ControlPlane) -> None:
    """Days have passed."""
    write(plane)
    plane.kafka.clock.advance(days=8)
    assert fetch(plane, 0) is E.OFFSET_OUT_OF_RANGE


def removed_by_delete_records(plane: ControlPlane) -> None:
    """A tool has removed the first record; the client names topics, as older ones do."""
    write(plane)
    admin = AdminClient({"bootstrap.servers": plane.bootstrap})
    (deleted,) = admin.delete_records([TopicPartition("t", 0, 1)]).values()
    deleted.result()
    assert fetch(plane, 0, version=NAMES_VERSION) is E.OFFSET_OUT_OF_RANGE


def offset_of_an_earlier_topic(plane: ControlPlane) -> None:
    """The topic of that name had more records."""
    write(plane)
    plane.kafka.topics["t"].delete()
    plane.kafka.topics.create("t", partitions=2)
    assert fetch(plane, 2) is E.OFFSET_OUT_OF_RANGE


def offset_never_there(plane: ControlPlane) -> None:
    """Nor is it there now."""
    write(plane)
    assert fetch(plane, 9) is E.OFFSET_OUT_OF_RANGE


def behind_a_transaction(plane: ControlPlane) -> Producer:
    """It is open, and the consumer reads committed records."""
    producer = Producer({"bootstrap.servers": plane.bootstrap, "transactional.id": "tx"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("t", b"v", partition=0)
    producer.flush()
    fetch(plane, 0, isolation_level=1)
    return producer


def over_its_quota(plane: ControlPlane) -> None:
    """The second response is empty."""
    write(plane)
    quota = EntryData([EntityData("client-id", None)], [OpData("consumer_byte_rate", 1.0)])
    plane.server.wire().call(ApiKey.ALTER_CLIENT_QUOTAS, 1, AlterClientQuotasRequest([quota]))
    plane.server.freeze()
    for _ in range(2):
        fetch(plane, 0)


def reads_an_empty_partition(plane: ControlPlane) -> None:
    """The records are in another one."""
    write(plane)
    fetch(plane, 0, index=1)


def nothing_written(plane: ControlPlane) -> None:
    """The producer has not flushed, for example."""
    fetch(plane, 0, index=1)


def read_by_another(plane: ControlPlane) -> None:
    """Another consumer of the group has committed the end."""
    write(plane)
    wire = coordinated(plane.server)
    commit(wire, "t", 2)
    assert offset_of(wire, "t") == 2
    fetch(plane, 2)


def aborted(plane: ControlPlane) -> None:
    """The records are there, but not for read_committed."""
    behind_a_transaction(plane).abort_transaction()
    fetch(plane, 0, isolation_level=1)


def started_at_the_end(plane: ControlPlane) -> None:
    """Without a committed offset, and with auto.offset.reset=latest."""
    write(plane)
    consumer = Consumer({"bootstrap.servers": plane.bootstrap, "group.id": "g", "auto.offset.reset": "latest"})
    consumer.assign([TopicPartition("t", 0)])
    pattern = "had no committed offset"
    until(lambda: consumer.poll(0.05) or pattern in plane.kafka.report().text, "the hint")
    consumer.close()


def old_topic_id(plane: ControlPlane) -> None:
    """A client that has not asked for metadata since."""
    wire = plane.server.wire()
    (topic,) = metadata(wire, "t")
    plane.kafka.topics["t"].delete()
    plane.kafka.topics.create("t", partitions=2)
    fetch_topic = FetchTopic("", [FetchPartition(0, 0, 1 << 20)], topic_id=topic.topic_id)
    wire.call(ApiKey.FETCH, IDS_VERSION, FetchRequest(max_wait_ms=0, session_epoch=-1, topics=[fetch_topic]))


WAYS: tuple[Callable[[ControlPlane], object], ...] = (
    removed_by_retention, removed_by_delete_records, offset_of_an_earlier_topic, offset_never_there,
    behind_a_transaction, reads_an_empty_partition, nothing_written, read_by_another, aborted,
    over_its_quota, started_at_the_end, old_topic_id,
)  # fmt: skip
"""What happens; the table in docs/troubleshooting.md has the sentence."""


@pytest.mark.parametrize("act", WAYS, ids=[each.__name__ for each in WAYS])
def test_every_way_has_its_hint(plane_of: ControlPlaneOf, act: Callable[[ControlPlane], object]) -> None:
    """Each way in which a fetch returns nothing has a hint with the cause and the time."""
    plane = plane_of(topics=["t:2"], settings=SETTINGS)
    coordinated(plane.server)
    kept = act(plane)
    check(plane, act.__name__)
    del kept


def lost_by_an_election(plane_of: ControlPlaneOf) -> ControlPlane:
    """The follower was kept from replicating, left the ISR, and leads after the leader's end."""
    plane = plane_of(brokers=2, topics=[], settings={**SETTINGS, "unclean.leader.election.enable": "true"})
    plane.kafka.topics.create("t", partitions=1, replication_factor=2)
    partition = plane.kafka.topics["t"].partitions[0]
    write(plane, 1)
    leader = partition.show().leader
    follower = 3 - leader
    partition.set_isr([leader])
    write(plane, 1)
    partition.move_leader(follower)
    assert fetch(plane, 2, broker=follower) is E.OFFSET_OUT_OF_RANGE
    return plane


def not_replicated(plane_of: ControlPlaneOf) -> ControlPlane:
    """The follower is kept from replicating, and still in the ISR."""
    plane = plane_of(brokers=2, topics=[], settings=SETTINGS)
    plane.kafka.topics.create("t", partitions=1, replication_factor=2)
    partition = plane.kafka.topics["t"].partitions[0]
    leader = partition.show().leader
    partition.set_isr([1, 2], held=[3 - leader])
    plane.server.freeze()
    write(plane, 1)
    fetch(plane, 0, broker=leader)
    return plane


def share_group_started_at_the_end(plane_of: ControlPlaneOf) -> ControlPlane:
    """As share groups do by default."""
    plane = plane_of(topics=["t:1"], settings={**SHARE_SETTINGS, "group.share.assignment.interval.ms": 0})
    plane.server.make_coordinators()
    write(plane)
    wire = plane.server.wire()
    request = ShareGroupHeartbeatRequest(SHARES, "m1", 0, None, ["t"])
    assert wire.call(ApiKey.SHARE_GROUP_HEARTBEAT, 1, request).error_code is E.NONE
    (topic,) = metadata(wire, "t")
    assert topic.topic_id is not None
    member = Sharer(wire, topic.topic_id)
    until(lambda: not member.acquired() and plane.kafka.groups[SHARES].show().share_partitions, "the share partition")
    until(lambda: plane.kafka.groups[SHARES].show().share_partitions[0].start_offset == 2, "its start")
    return plane


OF_OTHER_SERVERS = (lost_by_an_election, not_replicated, share_group_started_at_the_end)


@pytest.mark.parametrize("act", OF_OTHER_SERVERS, ids=[each.__name__ for each in OF_OTHER_SERVERS])
def test_ways_of_two_brokers(plane_of: ControlPlaneOf, act: Callable[[ControlPlaneOf], ControlPlane]) -> None:
    """Likewise, and of another kind of group."""
    check(act(plane_of), act.__name__)
