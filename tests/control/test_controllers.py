"""Several controllers: what clients and administrators see of the quorum while the active one comes and goes."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicState
from protocol.messages.describe_cluster import DescribeClusterRequest
from protocol.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from protocol.messages.streams_group_heartbeat import Subtopology, TopicInfo
from protocol.messages.update_raft_voter import KRaftVersionFeature, UpdateRaftVoterRequest
from protocol.messages.update_raft_voter import Listener as Endpoint
from protocol.types import uuid_from_text
from tests.in_process import InProcess, ServersInProcess
from tests.scenarios.groups.members import G
from tests.scenarios.groups.streams import STREAMS_SETTINGS, StreamsMember
from tests.wire import Wire

VOTERS = [3000, 3001, 3002]


@pytest.fixture
def servers_in_process() -> Iterator[ServersInProcess]:
    """Clusters of this test."""
    with ServersInProcess() as servers, servers.test():
        yield servers


@pytest.fixture
def cluster(servers_in_process: ServersInProcess) -> InProcess:
    """One broker, and three controllers of which the first leads."""
    return servers_in_process.fresh(controllers=3, seed=1)


def controller(cluster: InProcess, id: int) -> Wire:
    """A connection to a controller."""
    (address,) = (f"{c['host']}:{c['port']}" for c in info(cluster)["controllers"] if c["id"] == id)
    return cluster.connected(address)


def info(cluster: InProcess) -> Any:
    """What `GET /v1/cluster` returns."""
    return cluster.control("GET", "/v1/cluster")


def quorum(wire: Wire) -> Any:
    """The quorum as a node describes it."""
    request = DescribeQuorumRequest([TopicData("__cluster_metadata", [PartitionData(0)])])
    return wire.call(ApiKey.DESCRIBE_QUORUM, 2, request)


def led(cluster: InProcess) -> tuple[int, int]:
    """Leader and epoch, from the broker."""
    partition = quorum(cluster.wire()).topics[0].partitions[0]
    return partition.leader_id, partition.leader_epoch


def creation(name: str) -> CreateTopicsRequest:
    """A request for a topic."""
    return CreateTopicsRequest([CreatableTopic(name, 1, 1)], 1000)


def create(wire: Wire, name: str) -> tuple[ErrorCode, str | None]:
    """Create a topic; the error and its message."""
    (topic,) = wire.call(ApiKey.CREATE_TOPICS, 4, creation(name)).topics
    return topic.error_code, topic.error_message


def test_three_controllers_vote_and_the_broker_observes(cluster: InProcess) -> None:
    """All at the end of the log; DescribeCluster of a controller lists the three, the active one is the leader."""
    answer = quorum(cluster.wire())
    (partition,) = answer.topics[0].partitions
    assert [each.replica_id for each in partition.current_voters] == VOTERS
    assert [each.replica_id for each in partition.observers] == [1]
    ends = {each.log_end_offset for each in (*partition.current_voters, *partition.observers)}
    assert ends == {partition.high_watermark}
    assert [each.node_id for each in answer.nodes] == VOTERS
    for each in VOTERS:
        described = controller(cluster, each).call(ApiKey.DESCRIBE_CLUSTER, 2, DescribeClusterRequest(endpoint_type=2))
        assert described.controller_id == partition.leader_id == 3000
        assert [node.broker_id for node in described.brokers] == VOTERS


def test_a_controller_that_is_not_active_refuses(cluster: InProcess) -> None:
    """NOT_CONTROLLER and NOT_LEADER_OR_FOLLOWER, with Kafka's messages; the active one serves."""
    assert create(controller(cluster, 3000), "a")[0] is ErrorCode.NONE
    passive = controller(cluster, 3001)
    assert create(passive, "b") == (ErrorCode.NOT_CONTROLLER, "The active controller appears to be node 3000.")
    answer = quorum(passive)
    assert answer.topics[0].partitions[0].error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (answer.error_code, answer.nodes) == (ErrorCode.NONE, ())


def test_a_request_waits_for_the_next_controller(cluster: InProcess) -> None:
    """The active controller is killed: after controller.quorum.fetch.timeout.ms there is another, in the next epoch."""
    cluster.freeze()
    killed = cluster.control("POST", "/v1/controllers/3000/kill")
    assert (killed["state"], killed["controller"]) == ("down", -1)
    wire = cluster.wire()
    wire.send(ApiKey.CREATE_TOPICS, 4, creation("a"))
    cluster.advance(1999)
    assert not wire.has_answer()
    cluster.advance(1)
    assert wire.answer().topics[0].error_code is ErrorCode.NONE
    leader, epoch = led(cluster)
    assert leader in VOTERS[1:]
    assert epoch == 2
    (dead,) = (v for v in quorum(cluster.wire()).topics[0].partitions[0].current_voters if v.replica_id == 3000)
    assert (dead.log_end_offset, dead.last_fetch_timestamp, dead.last_caught_up_timestamp) == (-1, -1, -1)


def test_a_controller_that_stops_hands_over(cluster: InProcess) -> None:
    """At once, without the clock; started again, it follows and has all records."""
    cluster.freeze()
    assert cluster.control("POST", "/v1/controllers/3000/stop")["controller"] in VOTERS[1:]
    assert create(cluster.wire(), "a")[0] is ErrorCode.NONE
    cluster.control("POST", "/v1/controllers/3000/start")
    (partition,) = quorum(cluster.wire()).topics[0].partitions
    assert {each.log_end_offset for each in partition.current_voters} == {partition.high_watermark}
    assert led(cluster)[1] == 2


def test_without_a_majority_requests_time_out(cluster: InProcess) -> None:
    """The leader resigns after 3 s; a broker answers REQUEST_TIMED_OUT after 60 s, and serves its clients all along."""
    cluster.freeze()
    for each in VOTERS[1:]:
        cluster.control("POST", f"/v1/controllers/{each}/kill")
    assert info(cluster)["controller"] == 3000
    wire = cluster.wire()
    deleting = {version: cluster.wire() for version in (5, 6)}
    wire.send(ApiKey.CREATE_TOPICS, 4, creation("a"))
    for version, other in deleting.items():
        other.send(ApiKey.DELETE_TOPICS, version, DeleteTopicsRequest(topics=[DeleteTopicState("t")]))
    cluster.advance(3000)
    assert info(cluster)["controller"] == -1
    assert create(controller(cluster, 3000), "b") == (ErrorCode.NOT_CONTROLLER, "No controller appears to be active.")
    cluster.advance(56_999)
    assert not wire.has_answer()
    cluster.advance(1)
    assert wire.answer().topics[0].error_code is ErrorCode.REQUEST_TIMED_OUT
    assert [list(deleting[each].answer().responses) for each in (5, 6)] == [
        [], [DeletableTopicResult("t", ErrorCode.REQUEST_TIMED_OUT)]
    ]  # fmt: skip
    cluster.control("POST", "/v1/controllers/3001/start")
    cluster.advance(2000)
    assert create(cluster.wire(), "c")[0] is ErrorCode.NONE
    assert led(cluster)[1] == 2


def paused(cluster: InProcess, id: int = 3000) -> Wire:
    """Pause a controller, and send the broker a request for a topic."""
    assert cluster.control("POST", f"/v1/controllers/{id}/pause")["state"] == "paused"
    wire = cluster.wire()
    wire.send(ApiKey.CREATE_TOPICS, 4, creation("a"))
    return wire


def test_a_paused_controller_that_goes_on_in_time_still_leads(cluster: InProcess) -> None:
    """Before controller.quorum.fetch.timeout.ms: the same epoch, and the request that waited is served."""
    cluster.freeze()
    wire = paused(cluster)
    cluster.advance(1999)
    assert not wire.has_answer()
    assert cluster.control("POST", "/v1/controllers/3000/resume") == {
        "id": 3000,
        "state": "running",
        "controller": 3000,
    }
    assert wire.answer().topics[0].error_code is ErrorCode.NONE
    assert led(cluster) == (3000, 1)


def test_a_request_at_a_paused_controller_waits_for_its_socket_timeout(cluster: InProcess) -> None:
    """Another one is elected after 2 s; the broker finds it after 30 s, as its connection to the paused one is open."""
    cluster.freeze()
    wire = paused(cluster)
    cluster.advance(2000)
    leader = info(cluster)["controller"]
    assert leader in VOTERS[1:]
    assert create(controller(cluster, leader), "b")[0] is ErrorCode.NONE
    cluster.advance(27_999)
    assert not wire.has_answer()
    cluster.advance(1)
    assert wire.answer().topics[0].error_code is ErrorCode.NONE
    assert create(cluster.wire(), "b")[0] is ErrorCode.TOPIC_ALREADY_EXISTS


def test_a_paused_controller_goes_on_as_a_follower(cluster: InProcess) -> None:
    """It refuses what brokers sent it, which they send to the elected one; it has all records."""
    cluster.freeze()
    wire = paused(cluster)
    cluster.advance(2000)
    cluster.control("POST", "/v1/controllers/3000/resume")
    assert wire.answer().topics[0].error_code is ErrorCode.NONE
    assert create(controller(cluster, 3000), "b")[0] is ErrorCode.NOT_CONTROLLER
    (partition,) = quorum(cluster.wire()).topics[0].partitions
    assert {each.log_end_offset for each in partition.current_voters} == {partition.high_watermark}
    assert (partition.leader_id in VOTERS[1:], partition.leader_epoch) == (True, 2)


def test_a_paused_controller_that_is_killed_ends_the_wait(cluster: InProcess) -> None:
    """Its connections break, so the brokers send the request to the one that was elected."""
    cluster.freeze()
    wire = paused(cluster)
    cluster.advance(2000)
    assert not wire.has_answer()
    cluster.control("POST", "/v1/controllers/3000/kill")
    assert wire.answer().topics[0].error_code is ErrorCode.NONE


def test_paused_followers_are_missed(cluster: InProcess) -> None:
    """One of two: nothing waits. Both: nothing is committed, until one of them goes on."""
    cluster.freeze()
    cluster.control("POST", "/v1/controllers/3001/pause")
    assert create(cluster.wire(), "b")[0] is ErrorCode.NONE
    wire = paused(cluster, 3002)
    assert not wire.has_answer()
    cluster.control("POST", "/v1/controllers/3001/resume")
    assert wire.answer().topics[0].error_code is ErrorCode.NONE
    assert led(cluster) == (3000, 1)


def test_a_broker_forwards_one_request_at_a_time(servers_in_process: ServersInProcess) -> None:
    """What follows a request that waits for a majority waits, too, though a controller could answer it."""
    cluster = servers_in_process.fresh(brokers=2, controllers=3, seed=1)
    cluster.freeze()
    for each in VOTERS[1:]:
        cluster.control("POST", f"/v1/controllers/{each}/kill")
    creating, listing, other = cluster.wire(), cluster.wire(), cluster.wire(2)
    request = ListPartitionReassignmentsRequest(topics=None)
    assert listing.call(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, request).error_code is ErrorCode.NONE
    creating.send(ApiKey.CREATE_TOPICS, 4, creation("a"))
    listing.send(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, request)
    at_controller = controller(cluster, 3000)
    at_controller.send(ApiKey.CREATE_TOPICS, 4, creation("b"))
    for wire in (other, controller(cluster, 3000)):
        assert wire.call(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, request).error_code is ErrorCode.NONE
    assert not creating.has_answer()
    assert not listing.has_answer()
    cluster.control("POST", "/v1/controllers/3001/start")
    assert creating.answer().topics[0].error_code is ErrorCode.NONE
    assert listing.answer().error_code is ErrorCode.NONE


def test_a_paused_broker_forwards_nothing(servers_in_process: ServersInProcess) -> None:
    """A request that waits there for a controller is served when the broker goes on, not when there is one."""
    cluster = servers_in_process.fresh(brokers=2, controllers=3, seed=1)
    cluster.freeze()
    cluster.control("POST", "/v1/controllers/3000/kill")
    wire = cluster.wire(2)
    wire.send(ApiKey.CREATE_TOPICS, 4, creation("a"))
    cluster.control("POST", "/v1/brokers/2/pause")
    cluster.advance(2000)
    request = MetadataRequest([MetadataRequestTopic(name="a")], allow_auto_topic_creation=False)
    assert cluster.wire().call(ApiKey.METADATA, 12, request).topics[0].error_code is not ErrorCode.NONE
    cluster.control("POST", "/v1/brokers/2/resume")
    assert wire.answer().topics[0].error_code is ErrorCode.NONE


def test_what_a_paused_broker_has_sent_to_a_paused_controller_is_served(servers_in_process: ServersInProcess) -> None:
    """When the controller goes on, still the active one; the response waits for the broker."""
    cluster = servers_in_process.fresh(brokers=2, controllers=3, seed=1)
    cluster.freeze()
    cluster.control("POST", "/v1/controllers/3000/pause")
    wire = cluster.wire(2)
    wire.send(ApiKey.CREATE_TOPICS, 4, creation("a"))
    cluster.advance(1)
    cluster.control("POST", "/v1/brokers/2/pause")
    cluster.control("POST", "/v1/controllers/3000/resume")
    assert create(cluster.wire(), "a")[0] is ErrorCode.TOPIC_ALREADY_EXISTS
    assert not wire.has_answer()
    cluster.control("POST", "/v1/brokers/2/resume")
    assert wire.answer().topics[0].error_code is ErrorCode.NONE


def test_reassignments_are_listed_by_the_active_controller(cluster: InProcess) -> None:
    """A broker keeps the request until there is one; a controller that is not active refuses it."""
    cluster.freeze()
    request = ListPartitionReassignmentsRequest(topics=None)
    refused = controller(cluster, 3001).call(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, request)
    assert refused.error_code is ErrorCode.NOT_CONTROLLER
    cluster.control("POST", "/v1/controllers/3000/kill")
    wire = cluster.wire()
    wire.send(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, request)
    cluster.advance(1999)
    assert not wire.has_answer()
    cluster.advance(1)
    assert wire.answer().error_code is ErrorCode.NONE


def test_a_streams_member_joins_without_a_controller(servers_in_process: ServersInProcess) -> None:
    """Its group's internal topics are missing until the next controller creates them."""
    cluster = servers_in_process.fresh(controllers=3, seed=1, topics=["in:4"], settings=STREAMS_SETTINGS)
    wire = cluster.wire()
    wire.call(ApiKey.FIND_COORDINATOR, 4, FindCoordinatorRequest(G, 0, [G]))
    cluster.freeze()
    cluster.control("POST", "/v1/controllers/3000/kill")
    topology = [
        Subtopology("0", ["in"], repartition_sink_topics=["repartition"]),
        Subtopology("1", repartition_source_topics=[TopicInfo("repartition")]),
    ]
    member = StreamsMember(wire, topology)
    assert member.join().error_code is ErrorCode.NONE
    assert member.statuses == {3: "Internal topics are missing: repartition"}
    cluster.advance(2000)
    request = MetadataRequest([MetadataRequestTopic(name="repartition")], allow_auto_topic_creation=False)
    (topic,) = wire.call(ApiKey.METADATA, 12, request).topics
    assert (topic.error_code, len(topic.partitions)) == (ErrorCode.NONE, 4)


def test_a_reset_starts_all_controllers(cluster: InProcess) -> None:
    """And the first one leads again, in epoch 1; with topics kept, another goes on."""
    for each in VOTERS[:2]:
        cluster.control("POST", f"/v1/controllers/{each}/kill")
    cluster.control("POST", "/v1/reset")
    assert led(cluster) == (3000, 1)
    assert create(cluster.wire(), "a")[0] is ErrorCode.NONE
    for each in VOTERS[:2]:
        cluster.control("POST", f"/v1/controllers/{each}/kill")
    cluster.control("POST", "/v1/reset", {"keep": ["topics"]})
    assert led(cluster)[1] == 2
    assert create(cluster.wire(), "a")[0] is ErrorCode.TOPIC_ALREADY_EXISTS


def test_a_reset_ends_a_pause(cluster: InProcess) -> None:
    """The first controller leads in epoch 1, whether it was paused or not, and each responds."""
    for paused in ([3000], [3001, 3000]):
        for each in paused:
            cluster.control("POST", f"/v1/controllers/{each}/pause")
        cluster.control("POST", "/v1/reset")
        assert led(cluster) == (3000, 1)
        assert [each["up"] for each in info(cluster)["controllers"]] == [True, True, True]
        assert create(controller(cluster, 3001), "a")[0] is ErrorCode.NOT_CONTROLLER
        assert create(cluster.wire(), "a")[0] is ErrorCode.NONE


def test_a_killed_broker_is_fenced_a_session_after_the_election(cluster: InProcess) -> None:
    """The next active controller knows of no earlier heartbeat, and gives all brokers a whole session."""
    cluster.freeze()
    session_ms = 9000
    cluster.control("POST", "/v1/brokers/1/kill")
    cluster.advance(5000)
    cluster.control("POST", "/v1/controllers/3000/kill")
    cluster.control("POST", "/v1/clock/advance", {"ms": 2000 + session_ms - 1})
    assert not info(cluster)["brokers"][0]["fenced"]
    cluster.advance(1)
    assert info(cluster)["brokers"][0]["fenced"]


def voter_request(cluster: InProcess, id: int, directory: UUID | None = None) -> AddRaftVoterRequest:
    """A request to add a controller, with its own directory id or another one."""
    (described,) = (each for each in info(cluster)["controllers"] if each["id"] == id)
    own = uuid_from_text(described["directory_id"])
    at = [Listener("CONTROLLER", described["host"], described["port"])]
    return AddRaftVoterRequest(None, 1000, id, directory or own, at)


def add_voter(wire: Wire, request: AddRaftVoterRequest) -> tuple[ErrorCode, str | None]:
    """The error, and its message."""
    answer = wire.call(ApiKey.ADD_RAFT_VOTER, 1, request)
    return answer.error_code, answer.error_message


def remove_voter(wire: Wire, id: int, directory: UUID) -> ErrorCode:
    """The error."""
    answer: RemoveRaftVoterResponse = wire.call(
        ApiKey.REMOVE_RAFT_VOTER, 0, RemoveRaftVoterRequest(None, id, directory)
    )
    return answer.error_code


def members(cluster: InProcess) -> tuple[list[int], list[int]]:
    """The ids of voters and of observers."""
    (partition,) = quorum(cluster.wire()).topics[0].partitions
    voters, observers = ([each.replica_id for each in ids] for ids in (partition.current_voters, partition.observers))
    return voters, observers


def test_an_observer_becomes_a_voter_and_again_an_observer(servers_in_process: ServersInProcess) -> None:
    """AddRaftVoter and RemoveRaftVoter with effect; the removed leader hands over in the next epoch (KIP-853)."""
    cluster = servers_in_process.fresh(controllers=3, seed=1, features={"kraft.version": 1})
    added = cluster.control("POST", "/v1/controllers", {})
    assert (added["id"], added["voter"]) == (3003, False)
    assert members(cluster) == (VOTERS, [1, 3003])
    request, wire = voter_request(cluster, 3003), cluster.wire()
    passive = controller(cluster, 3001)
    assert add_voter(passive, request) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, "")
    code, text = add_voter(wire, voter_request(cluster, 3003, UUID(int=0x5151 << 64 | 77)))
    assert code is ErrorCode.REQUEST_TIMED_OUT
    key = "ReplicaKey(id=3003, directoryId=AAAAAAAAUVEAAAAAAAAATQ)"
    assert text == f"Aborted add voter operation for {key} since it is lagging behind"
    assert add_voter(wire, request) == (ErrorCode.NONE, None)
    assert members(cluster) == ([*VOTERS, 3003], [1])
    assert add_voter(wire, request)[0] is ErrorCode.DUPLICATE_VOTER
    directories = {each["id"]: uuid_from_text(each["directory_id"]) for each in info(cluster)["controllers"]}
    assert remove_voter(wire, 3001, directories[3000]) is ErrorCode.VOTER_NOT_FOUND
    assert remove_voter(wire, 3000, directories[3000]) is ErrorCode.NONE
    assert members(cluster) == ([3001, 3002, 3003], [1, 3000])
    leader, epoch = led(cluster)
    assert leader in {3001, 3002, 3003}
    assert epoch == 2
    assert create(wire, "a")[0] is ErrorCode.NONE
    cluster.control("DELETE", "/v1/controllers/3000")
    assert members(cluster) == ([3001, 3002, 3003], [1])
    cluster.control("POST", "/v1/reset")
    assert members(cluster) == (VOTERS, [1])


def update(
    cluster: InProcess,
    id: int,
    at: int = 3000,
    *,
    cluster_id: str | None = None,
    epoch: int = 1,
    directory: UUID | None = None,
    endpoints: Sequence[tuple[str, str, int]] = (("CONTROLLER", "moved", 9),),
    versions: tuple[int, int] = (0, 1),
) -> ErrorCode:
    """Send UpdateRaftVoter to a controller; the error. The leader is in each response."""
    known = {each["id"]: uuid_from_text(each["directory_id"]) for each in info(cluster)["controllers"]}
    request = UpdateRaftVoterRequest(
        cluster_id,
        epoch,
        id,
        known.get(id, UUID(int=9)) if directory is None else directory,
        [Endpoint(*each) for each in endpoints],
        KRaftVersionFeature(*versions),
    )
    answer = controller(cluster, at).call(ApiKey.UPDATE_RAFT_VOTER, 0, request)
    assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (3000, 1)
    assert answer.current_leader.port == quorum(cluster.wire()).nodes[0].listeners[0].port
    return ErrorCode(answer.error_code)


def endpoints_of(cluster: InProcess, id: int) -> list[tuple[str, str, int]]:
    """The endpoints of a voter in DescribeQuorum."""
    (node,) = (each for each in quorum(cluster.wire()).nodes if each.node_id == id)
    return [(each.name, each.host, each.port) for each in node.listeners]


@pytest.mark.parametrize("level", [0, 1])
def test_a_voter_updates_its_endpoints_at_the_leader(servers_in_process: ServersInProcess, level: int) -> None:
    """The checks in the order of a 4.4.0 with two controllers; DescribeQuorum has a recorded voter's new address."""
    cluster = servers_in_process.fresh(controllers=3, seed=1, features={"kraft.version": level})
    before = endpoints_of(cluster, 3001)
    refused = {
        "another cluster": (update(cluster, 3001, 3001, cluster_id="x", epoch=7), ErrorCode.INCONSISTENT_CLUSTER_ID),
        "an earlier epoch": (update(cluster, 3001, 3001, epoch=0), ErrorCode.FENCED_LEADER_EPOCH),
        "a later epoch": (update(cluster, 3001, epoch=2), ErrorCode.UNKNOWN_LEADER_EPOCH),
        "a follower": (update(cluster, -1, 3001), ErrorCode.NOT_LEADER_OR_FOLLOWER),
        "no id": (update(cluster, -1), ErrorCode.INVALID_REQUEST),
        "no directory": (update(cluster, 3001, directory=UUID(int=0)), ErrorCode.INVALID_REQUEST),
        "another listener": (update(cluster, 77, endpoints=[("X", "h", 1)]), ErrorCode.INVALID_REQUEST),
        "no listener": (update(cluster, 77, endpoints=[]), ErrorCode.INVALID_REQUEST),
        "no range": (update(cluster, 77, versions=(1, 0)), ErrorCode.INVALID_REQUEST),
        "a negative range": (update(cluster, 77, versions=(-1, 1)), ErrorCode.INVALID_REQUEST),
        "a range without the level": (update(cluster, 77, versions=(2, 3)), ErrorCode.INVALID_REQUEST),
        "an unknown voter": (update(cluster, 77), ErrorCode.VOTER_NOT_FOUND),
    }
    assert {why: code for why, (code, _) in refused.items()} == {why: code for why, (_, code) in refused.items()}
    other = update(cluster, 3001, directory=UUID(int=5))
    assert other is (ErrorCode.VOTER_NOT_FOUND if level else ErrorCode.NONE)
    assert update(cluster, 3001, endpoints=[("controller", "new", 5), ("X", "h", 1)]) is ErrorCode.NONE
    assert endpoints_of(cluster, 3001) == ([("CONTROLLER", "new", 5)] if level else before)
    assert led(cluster) == (3000, 1)


def test_added_voters_are_recorded_in_the_directory(servers_in_process: ServersInProcess, tmp_path: Path) -> None:
    """A cluster that starts again has the voters of its log, all topics, and the next leader epoch."""
    options: dict[str, Any] = {"controllers": 2, "data_dir": tmp_path, "features": {"kraft.version": 1}}
    first = servers_in_process.fresh(**options)
    first.control("POST", "/v1/controllers", {"id": 3009})
    assert add_voter(first.wire(), voter_request(first, 3009)) == (ErrorCode.NONE, None)
    assert create(first.wire(), "a")[0] is ErrorCode.NONE
    first.stop()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("broker-1", "controller-3000", "controller-3001", "controller-3009")
    ]
    again = servers_in_process.fresh(**options)
    assert members(again) == ([3000, 3001, 3009], [1])
    assert led(again) == (3000, 2)
    assert create(again.wire(), "a")[0] is ErrorCode.TOPIC_ALREADY_EXISTS
