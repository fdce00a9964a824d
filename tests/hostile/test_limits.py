"""Bad input, conformance 4 B50 to B60: requests that are sound, and too many or too large.

conformance 4 B53 and B54 are about SASL listeners, which come later.
"""

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from protocol.messages.metadata import MetadataRequest
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.conftest import BrokerWith
from tests.hostile.victims import MAX_INT, Victim
from tests.scenarios.core.asking import (
    batches_of,
    create,
    created,
    data_of,
    fetch,
    fetch_request,
    interest,
    metadata,
    produce,
    produced,
    topic,
)
from tests.scenarios.core.batches import batch, sized
from tests.serving import Server, until
from tests.wire import Closed, Wire

MIB = 1024 * 1024
BAD_NAMES = ["x" * 250, "..", "é", "a\0b", "../../x", ""]
SETTINGS = {"offsets.topic.replication.factor": 1, "group.initial.rebalance.delay.ms": 0}


def test_B50_a_thousand_requests_at_once(victim: Victim) -> None:
    """All are answered, in order, once the client reads."""
    wire = victim.broker.wire()
    for _ in range(1000):
        wire.send(ApiKey.METADATA, 12, MetadataRequest())
    assert metadata(victim.broker.wire()) == ()
    assert all(wire.answer().brokers for _ in range(1000))


def send_for_ever(wire: Wire) -> None:
    """Ask for a megabyte again and again, and read nothing."""
    while True:
        wire.send(ApiKey.FETCH, 12, fetch_request({"foo": [interest()]}))


def receive_sixteen(wire: Wire) -> None:
    """Read as many answers as were asked for."""
    for _ in range(16):
        wire.receive_frame()


def test_B51_answers_that_are_not_read(victim: Victim) -> None:
    """The broker stops reading where its answers do not go out: what it holds does not grow with what is asked."""
    wire = victim.broker.wire(patience_s=1)
    created(wire, "foo")
    produced(wire, "foo", sized(MIB))
    before = victim.broker.resident_bytes()
    with pytest.raises(TimeoutError):
        send_for_ever(wire)
    assert victim.broker.resident_bytes() - before < 32 * MIB
    assert metadata(victim.broker.wire()) == ()


def test_B51_a_peer_that_does_not_read_is_closed_when_idle(broker_with: BrokerWith) -> None:
    """Though there is something left to be written: the broker does not wait for ever."""
    broker = broker_with(settings={"connections.max.idle.ms": 1000})
    wire = broker.wire()
    created(wire, "foo")
    produced(wire, "foo", sized(MIB))
    broker.freeze()
    for _ in range(16):
        wire.send(ApiKey.FETCH, 12, fetch_request({"foo": [interest()]}))
    metadata(broker.wire())
    broker.advance(2000)
    with pytest.raises(Closed):
        receive_sixteen(wire)


def test_B52_many_idle_connections(victim: Victim) -> None:
    """Three hundred of them are a small matter."""
    wires = [victim.broker.wire() for _ in range(300)]
    assert [metadata(wire) for wire in wires] == [()] * 300


def test_B52_above_max_connections_one_has_to_wait(broker_with: BrokerWith) -> None:
    """Accepted and unread, until another one goes."""
    broker = broker_with(settings={"max.connections": 2})
    first, second, third = broker.wire(), broker.wire(), broker.wire()
    assert (metadata(first), metadata(second)) == ((), ())
    third.send(ApiKey.METADATA, 12, MetadataRequest())
    assert metadata(first) == ()
    assert not third.has_answer()
    second.close()
    assert third.answer().brokers


# --- groups ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def broker(broker_with: BrokerWith) -> Server:
    """A broker whose groups do not wait for more members."""
    return broker_with(settings=SETTINGS)


def coordinator(broker: Server) -> Wire:
    """A connection to the broker, once it coordinates groups."""
    wire = broker.wire()
    request = FindCoordinatorRequest(coordinator_keys=["g"])
    until(lambda: not wire.call(ApiKey.FIND_COORDINATOR, 4, request).coordinators[0].error_code, "the coordinator")
    return wire


def join(wire: Wire, metadata_bytes: bytes, member_id: str = "", kind: str = "x") -> JoinGroupResponse:
    """JoinGroup of the group ``g``."""
    protocols = [JoinGroupRequestProtocol("p", metadata_bytes)]
    request = JoinGroupRequest("g", 10_000, member_id, kind, protocols, rebalance_timeout_ms=10_000)
    response: JoinGroupResponse = wire.call(ApiKey.JOIN_GROUP, 5, request)
    return response


@pytest.mark.parametrize("kind", ["x", "consumer"])
@pytest.mark.parametrize("garbage", [b"\xff" * 10, b"\xff" * 500_000, b"", b"\0\0\xff\xff\xff\xff"])
def test_B55_the_metadata_of_members_is_not_parsed(victim: Victim, kind: str, garbage: bytes) -> None:
    """Metadata and assignment are stored as they are. Kafka would never answer a consumer with bad metadata."""
    wire = coordinator(victim.broker)
    member_id = join(wire, b"", kind=kind).member_id
    joined = join(wire, garbage, member_id, kind)
    assert (joined.error_code, joined.members[0].metadata) == (ErrorCode.NONE, garbage)
    assignments = [SyncGroupRequestAssignment(member_id, b"\xfe" * 1000)]
    request = SyncGroupRequest("g", joined.generation_id, member_id, assignments=assignments)
    synced = wire.call(ApiKey.SYNC_GROUP, 3, request)
    assert (synced.error_code, synced.assignment) == (ErrorCode.NONE, b"\xfe" * 1000)
    left = LeaveGroupRequest("g", members=[MemberIdentity(member_id)])
    assert wire.call(ApiKey.LEAVE_GROUP, 3, left).error_code is ErrorCode.NONE


def test_B55_ten_megabytes_of_metadata(victim: Victim) -> None:
    """Too large for the group's log: the member gets the error, and the group lives on."""
    wire = coordinator(victim.broker)
    member_id = join(wire, b"").member_id
    joined = join(wire, bytes(10 * MIB), member_id)
    assignments = [SyncGroupRequestAssignment(member_id, b"")]
    request = SyncGroupRequest("g", joined.generation_id, member_id, assignments=assignments)
    assert wire.call(ApiKey.SYNC_GROUP, 3, request).error_code is not ErrorCode.NONE
    described = wire.call(ApiKey.DESCRIBE_GROUPS, 5, DescribeGroupsRequest(["g"])).groups[0]
    assert described.error_code is ErrorCode.NONE


def test_B60_a_storm_of_new_members(victim: Victim) -> None:
    """Each is given an id; one that does not join with it is forgotten after the session timeout."""
    wire = coordinator(victim.broker)
    assert {join(wire, b"").error_code for _ in range(300)} == {ErrorCode.MEMBER_ID_REQUIRED}
    described = wire.call(ApiKey.DESCRIBE_GROUPS, 5, DescribeGroupsRequest(["g"])).groups[0]
    assert (described.error_code, described.members) == (ErrorCode.NONE, ())
    victim.broker.advance(10_001)
    assert join(wire, b"").error_code is ErrorCode.MEMBER_ID_REQUIRED


# --- topics ----------------------------------------------------------------------------------------------------------


def test_B56_names_that_are_paths(victim: Victim) -> None:
    """INVALID_TOPIC_EXCEPTION when created or asked for; to Produce they are unknown."""
    wire = victim.broker.wire()
    results = create(wire, *(topic(name) for name in BAD_NAMES))
    assert [each.error_code for each in results] == [ErrorCode.INVALID_TOPIC_EXCEPTION] * len(BAD_NAMES)
    reported = metadata(wire, *BAD_NAMES, version=9, auto_create=True)
    assert [each.error_code for each in reported] == [ErrorCode.INVALID_TOPIC_EXCEPTION] * len(BAD_NAMES)
    assert produce(wire, "..", batch(b"x")).error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("index", [-1, MAX_INT, -(2**31)])
def test_B57_partitions_that_cannot_be(victim: Victim, index: int) -> None:
    """UNKNOWN_TOPIC_OR_PARTITION, to write or to read."""
    wire = victim.broker.wire()
    created(wire, "foo")
    assert produce(wire, "foo", batch(b"x"), partition=index).error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert fetch(wire, "foo", partition=index).error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_B58_sizes_of_a_fetch(victim: Victim) -> None:
    """As much as can be asked for, nothing at all, less than nothing."""
    wire = victim.broker.wire()
    created(wire, "foo")
    for _ in range(3):
        produced(wire, "foo", sized(500_000))

    def several(limit: int, partition_limit: int) -> int:
        request = fetch_request({"foo": [interest(max_bytes=partition_limit)]}, max_bytes=limit)
        ((answer,),) = [each.partitions for each in wire.call(ApiKey.FETCH, 12, request).responses]
        return len(batches_of(answer))

    assert several(MAX_INT, MAX_INT) == 3
    assert several(MAX_INT, 0) == 1
    assert several(0, MAX_INT) == 1
    negative = fetch(wire, "foo", max_bytes=-1)
    assert (negative.error_code, data_of(negative)) == (ErrorCode.UNKNOWN_SERVER_ERROR, b"")


def test_B58_an_answer_has_a_largest_size(broker_with: BrokerWith) -> None:
    """fetch.max.bytes, though the request allows more."""
    broker = broker_with(settings={"fetch.max.bytes": MIB})
    wire = broker.wire()
    created(wire, "foo", max_message_bytes=str(MIB))
    for _ in range(3):
        produced(wire, "foo", sized(400_000))
    request = fetch_request({"foo": [interest(max_bytes=MAX_INT)]}, max_bytes=MAX_INT)
    ((answer,),) = [each.partitions for each in wire.call(ApiKey.FETCH, 12, request).responses]
    assert len(batches_of(answer)) == 2
    assert len(data_of(answer)) <= MIB


def test_B59_more_partitions_than_a_request_may_make(victim: Victim) -> None:
    """A billion in one topic, or one in each of ten thousand and one topics: POLICY_VIOLATION."""
    wire = victim.broker.wire()
    (result,) = create(wire, topic("many", 10**9))
    assert result.error_code is ErrorCode.POLICY_VIOLATION
    results = create(wire, *(topic(f"t{number}") for number in range(10_001)))
    assert {each.error_code for each in results} == {ErrorCode.POLICY_VIOLATION}


@pytest.mark.parametrize("count", [MAX_INT, 10_004])
def test_B59_more_partitions_than_a_topic_may_get_at_once(victim: Victim, count: int) -> None:
    """Ten thousand more are the most; UNKNOWN_SERVER_ERROR before 4.4."""
    wire = victim.broker.wire()
    created(wire, "foo", 3)
    request = CreatePartitionsRequest([CreatePartitionsTopic("foo", count, None)], 30_000)
    (result,) = wire.call(ApiKey.CREATE_PARTITIONS, 3, request).results
    assert result.error_code is ErrorCode.POLICY_VIOLATION
    assert len(metadata(wire, "foo")[0].partitions) == 3


def test_B59_more_settings_than_a_request_may_change(victim: Victim) -> None:
    """POLICY_VIOLATION on each of ten thousand and one groups, none of which needs to exist."""
    wire = victim.broker.wire()
    change = [AlterableConfig("consumer.session.timeout.ms", 0, "50000")]
    resources = [AlterConfigsResource(32, f"g{number}", change) for number in range(10_001)]
    response = wire.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest(resources))
    assert {each.error_code for each in response.responses} == {ErrorCode.POLICY_VIOLATION}


def test_B59_more_topics_than_a_request_may_bring_about(victim: Victim) -> None:
    """Metadata creates what is missing, and no more of it at once than CreateTopics would."""
    wire = victim.broker.wire()
    reported = metadata(wire, *(f"t{number}" for number in range(10_001)), auto_create=True)
    assert {each.error_code for each in reported} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert wire.call(ApiKey.METADATA, 12, MetadataRequest(None)).topics == ()
