"""Groups and coordinators over HTTP, in Python and in the shell, with real members in them."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from confluent_kafka import Consumer

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from tests.control.conftest import ControlPlaneOf
from tests.control.harness import ControlPlane
from tests.serving import until
from understudy import results

E = ErrorCode
SESSION_MS = 10_000


@contextmanager
def member(
    plane: ControlPlane, group: str = "g", *, client_id: str = "c", seen: list[str] | None = None
) -> Iterator[Consumer]:
    """A consumer of t that has its assignment; what it is assigned, and what is taken from it, goes into ``seen``."""
    reported = [] if seen is None else seen
    consumer = Consumer({"bootstrap.servers": plane.bootstrap, "group.id": group, "client.id": client_id,
                         "session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": 200,
                         "auto.offset.reset": "earliest"})  # fmt: skip
    consumer.subscribe(["t"], on_assign=lambda _c, p: reported.append(f"+{len(p)}"),
                       on_revoke=lambda _c, p: reported.append(f"-{len(p)}"))  # fmt: skip
    until(lambda: consumer.poll(0.05) or reported, "the assignment")
    yield consumer
    consumer.close()


def shown(plane: ControlPlane, group: str = "g") -> results.Group:
    """The group in Python."""
    return plane.kafka.groups[group].show()


def test_a_group_is_shown_with_members_offsets_and_lag(plane: ControlPlane) -> None:
    """The same over HTTP, in Python and in the shell."""
    plane.kafka.topics["t"].write({"value": "a", "partition": 0}, {"value": "b", "partition": 0})
    with member(plane, client_id="app") as consumer:
        until(lambda: consumer.position(consumer.assignment())[0].offset > 0 or consumer.poll(0.05), "a record")
        consumer.commit(asynchronous=False)
        reported = shown(plane)
        assert (reported.state, reported.type, reported.protocol, reported.coordinator) == (
            "Stable",
            "classic",
            "range",
            1,
        )
        (one,) = reported.members
        assert (one.client_id, one.client_host, sorted(one.assignment)) == ("app", "127.0.0.1", ["t-0", "t-1"])
        assert one.epoch == reported.epoch > 0
        offsets = {offset.partition: offset for offset in reported.offsets}
        assert offsets[0].offset + offsets[0].lag == 2
        assert [row["group_id"] for row in plane.ctl("groups", "list")["groups"]] == ["g"]
        assert one.member_id in plane.ctl_text("groups", "show", "g")
        assert [group.group_id for group in plane.kafka.groups.list()] == ["g"]
    assert until(lambda: shown(plane).state == "Empty", "the member to leave")
    assert plane.refused("GET", "/v1/groups/h")[0] == 404


def test_a_consumer_that_has_committed_nothing_has_partitions_and_no_lag(plane: ControlPlane) -> None:
    """As kafka-consumer-groups.sh lists it: the end of each assigned partition, and a dash for offset and lag."""
    plane.kafka.topics["t"].write({"value": "a", "partition": 0})
    with member(plane, client_id="app"):
        group = shown(plane)
        assert [(each.partition, each.offset, each.end_offset, each.lag) for each in group.lags] == [
            (0, None, 1, None),
            (1, None, 0, None),
        ]
        assert (group.lag, group.offsets) == (None, ())


@pytest.mark.verb("groups reset-offsets")
def test_offsets_of_a_group_without_members_can_be_reset(plane: ControlPlane) -> None:
    """To either end, to an offset, to a time, for one partition or all; a consumer then reads from there."""
    for number, value in enumerate("abc"):
        plane.kafka.topics["t"].write({"value": value, "partition": 0, "timestamp_ms": 1000 * number + 1000})
    assert {
        each.partition: each.offset for each in plane.kafka.groups["g"].reset_offsets("t", to="latest").offsets
    } == {
        0: 3,
        1: 0,
    }
    assert plane.ctl("groups", "reset-offsets", "g", "t", "--timestamp-ms", "1500", "--partition", "0")["lag"] == 2
    assert [(each.offset, each.lag) for each in shown(plane).offsets] == [(1, 2), (0, 0)]
    consumer = Consumer({"bootstrap.servers": plane.bootstrap, "group.id": "g", "enable.auto.commit": False})
    consumer.subscribe(["t"])
    with closing(consumer):
        record = until(lambda: consumer.poll(0.05), "the record at the new offset")
        assert (record.value(), record.offset()) == (b"b", 1)
        status, problem = plane.refused("POST", "/v1/groups/g/offsets", {"topic": "t", "to": "earliest"})
        assert (status, "has members" in problem["detail"]) == (409, True)
    until(lambda: shown(plane).state == "Empty", "the member to leave")
    assert plane.http("POST", "/v1/groups/g/offsets", {"topic": "t", "offset": 99})["lag"] == 0
    assert plane.http("POST", "/v1/groups/g/offsets", {"topic": "t", "to": "earliest"})["lag"] == 3


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ({"topic": "t"}, 422, "the body needs exactly one of to, offset, timestamp_ms; it has none"),
        ({"topic": "t", "to": "latest", "offset": 1}, 422, "it has to and offset"),
        ({"topic": "tt", "to": "latest"}, 404, "there is no topic 'tt'"),
        ({"topic": "t", "to": "latest", "partition": 2}, 422, "topic 't' has no partition 2; it has 0 to 1"),
    ],
)
def test_a_reset_of_offsets_that_makes_no_sense_is_refused(
    plane: ControlPlane, body: dict[str, object], status: int, sentence: str
) -> None:
    """With the mistake in one sentence, and without a group that would come to be."""
    answered, problem = plane.refused("POST", "/v1/groups/g/offsets", body)
    assert (answered, sentence in problem["detail"]) == (status, True), problem
    assert plane.kafka.groups.list() == []


def test_a_list_of_groups_has_their_lag(plane: ControlPlane) -> None:
    """The sum over the partitions; a group that has committed nothing has none."""
    plane.kafka.topics["t"].write(*({"value": "a", "partition": number % 2} for number in range(6)))
    plane.kafka.groups["g"].reset_offsets("t", offset=1)
    with member(plane, "h"):
        assert [(group.group_id, group.lag) for group in plane.kafka.groups.list()] == [("g", 4), ("h", None)]
        first, *rows = plane.ctl_text("groups", "list").splitlines()
        assert (first.split()[-1], [row.split()[-1] for row in rows]) == ("LAG", ["4", "-"])


@pytest.mark.verb("groups rebalance")
def test_a_rebalance_can_be_asked_for(plane: ControlPlane) -> None:
    """The member gives its partitions back and gets them again, in the next generation."""
    seen: list[str] = []
    with member(plane, seen=seen) as consumer:
        before = shown(plane).epoch
        plane.kafka.groups["g"].rebalance()
        until(lambda: consumer.poll(0.05) or len(seen) >= 3, "the rebalance")
        assert seen == ["+2", "-2", "+2"]
        assert shown(plane).epoch == before + 1
        plane.ctl("groups", "rebalance", "g")
        until(lambda: consumer.poll(0.05) or len(seen) >= 5, "the second rebalance")
    assert until(lambda: shown(plane).state == "Empty", "the member to leave")
    assert plane.refused("POST", "/v1/groups/g/rebalance")[0] == 409


@pytest.mark.verb("groups evict")
def test_a_member_that_is_evicted_comes_back(plane: ControlPlane) -> None:
    """As after a session timeout: it is answered UNKNOWN_MEMBER_ID, loses its partitions and joins again."""
    seen: list[str] = []
    with member(plane, seen=seen) as consumer:
        (one,) = shown(plane).members
        plane.kafka.groups["g"].evict(one.member_id)
        until(lambda: consumer.poll(0.05) or len(seen) >= 3, "the new membership")
        (other,) = shown(plane).members
        assert other.member_id != one.member_id
        status, problem = plane.refused("POST", f"/v1/groups/g/members/{one.member_id}/evict")
        assert (status, other.member_id in problem["detail"]) == (404, True)
        plane.ctl_text("groups", "evict", "g", other.member_id)
        until(lambda: consumer.poll(0.05) or len(seen) >= 5, "the third membership")


def test_a_session_ends_when_the_clock_is_pushed_past_it(plane: ControlPlane) -> None:
    """Two members, both silent for longer than their sessions by the cluster's clock."""
    seen: list[str] = []
    with member(plane, seen=seen) as consumer:
        plane.kafka.clock.advance(ms=SESSION_MS + 1)
        assert shown(plane).members == ()
        until(lambda: consumer.poll(0.05) or len(seen) >= 3, "the new membership")
        assert len(shown(plane).members) == 1


def test_a_rebalance_is_held_between_join_and_sync(plane: ControlPlane) -> None:
    """A fault on the leader's SyncGroup holds it; the state is what Kafka has there."""
    with plane.kafka.faults.add(api="SyncGroup", group="g", delay_ms=3_600_000) as fault:
        consumer = Consumer({"bootstrap.servers": plane.bootstrap, "group.id": "g"})
        seen: list[int] = []
        consumer.subscribe(["t"], on_assign=lambda _c, p: seen.append(len(p)))
        until(lambda: consumer.poll(0.05) or fault.hits(), "the sync")
        assert shown(plane).state == "CompletingRebalance"
    until(lambda: consumer.poll(0.05) or seen, "the assignment")
    assert shown(plane).state == "Stable"
    consumer.close()


# --- coordinators ----------------------------------------------------------------------------------------------------


def heartbeat(plane: ControlPlane, broker: int) -> ErrorCode:
    """The error code of a broker's response to an unknown member of g."""
    answer = plane.server.wire(broker).call(ApiKey.HEARTBEAT, 4, HeartbeatRequest("g", 1, "unknown"))
    code: ErrorCode = answer.error_code
    return code


def offsets(plane: ControlPlane, broker: int) -> ErrorCode:
    """The error code of a broker's response to OffsetFetch of g."""
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", None)])
    code: ErrorCode = plane.server.wire(broker).call(ApiKey.OFFSET_FETCH, 8, request).groups[0].error_code
    return code


def named_coordinator(plane: ControlPlane, key_type: int = 0) -> int:
    """Whom FindCoordinator names for g."""
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["g"])
    coordinator = plane.server.wire().call(ApiKey.FIND_COORDINATOR, 4, request).coordinators[0]
    return int(coordinator.node_id)


@pytest.fixture
def three(plane_of: ControlPlaneOf) -> ControlPlane:
    """Three brokers."""
    return plane_of(brokers=3, topics=["t:2"])


@pytest.mark.verb("coordinators move")
def test_a_coordinator_moves_and_members_follow(three: ControlPlane) -> None:
    """The old one answers NOT_COORDINATOR, the new one knows the group; the consumer's commit goes there."""
    three.kafka.topics["t"].write({"value": "a", "partition": 0})
    with member(three) as consumer:
        until(lambda: consumer.position(consumer.assignment())[0].offset > 0 or consumer.poll(0.05), "a record")
        before = shown(three).coordinator
        target = before % 3 + 1
        three.kafka.coordinators.move(type="group", key="g", broker=target)
        assert (named_coordinator(three), shown(three).coordinator) == (target, target)
        assert heartbeat(three, before) is E.NOT_COORDINATOR
        assert heartbeat(three, target) is not E.NOT_COORDINATOR
        consumer.commit(asynchronous=False)
        assert three.kafka.groups["g"].show().offsets


@pytest.mark.parametrize("same", [True, False], ids=["the same broker", "another broker"])
def test_a_coordinator_takes_its_time_to_load(three: ControlPlane, same: bool) -> None:
    """COORDINATOR_LOAD_IN_PROGRESS by the cluster's clock; moved again meanwhile, only the last time counts."""
    before = until(lambda: max(named_coordinator(three), 0), "a coordinator")
    target = before if same else before % 3 + 1
    three.server.freeze()
    reported = three.ctl("coordinators", "move", "group", "g", str(target), "--loading-ms", "5s")
    assert (reported["broker"], reported["loading_ms"]) == (target, 5000)
    assert offsets(three, target) is E.COORDINATOR_LOAD_IN_PROGRESS
    three.kafka.coordinators.move(type="group", key="g", broker=target, loading_ms=7000)
    three.server.advance(5000)
    assert offsets(three, target) is E.COORDINATOR_LOAD_IN_PROGRESS
    three.server.advance(2000)
    assert offsets(three, target) is E.NONE


def test_a_transaction_coordinator_is_created_where_it_is_wanted(three: ControlPlane) -> None:
    """Before the id is used for the first time."""
    three.http("POST", "/v1/coordinators/move", {"type": "transaction", "key": "g", "broker": 3})
    assert named_coordinator(three, 1) == 3


def test_coordinators_are_moved_sensibly(plane: ControlPlane) -> None:
    """422 with the field, 404 for a broker that is not there."""
    move = {"type": "group", "key": "g", "broker": 1}
    for name, value in (("type", "share"), ("key", ""), ("broker", "one"), ("loading_ms", -1)):
        assert plane.refused("POST", "/v1/coordinators/move", {**move, name: value})[1]["field"] == name
    assert plane.refused("POST", "/v1/coordinators/move", {**move, "broker": 4})[0] == 404


@pytest.mark.parametrize("group", ["a/b", "50%", "a%2Fb", "ünïcode group"])
def test_a_group_of_any_name_is_found(plane: ControlPlane, group: str) -> None:
    """Kafka restricts no names of groups: a slash or a percent sign is part of one."""
    with member(plane, group):
        assert shown(plane, group).group_id == group
        assert plane.ctl("groups", "show", group)["group_id"] == group
        assert plane.kafka.groups[group].why().why
