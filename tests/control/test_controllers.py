"""Several controllers: what clients and administrators see of the quorum while the active one comes and goes."""

from collections.abc import Iterator
from typing import Any

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.describe_cluster import DescribeClusterRequest
from protocol.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from tests.in_process import InProcess, ServersInProcess
from tests.wire import Wire

VOTERS = [3000, 3001, 3002]


@pytest.fixture
def cluster() -> Iterator[InProcess]:
    """One broker, and three controllers of which the first leads."""
    with ServersInProcess() as servers, servers.test():
        yield servers.fresh(controllers=3, seed=1)


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
    cluster.control("POST", "/v1/clock/freeze")
    killed = cluster.control("POST", "/v1/controllers/3000/kill")
    assert (killed["state"], killed["controller"]) == ("down", -1)
    wire = cluster.wire()
    wire.send(ApiKey.CREATE_TOPICS, 4, creation("a"))
    cluster.control("POST", "/v1/clock/advance", {"ms": 1999})
    assert not wire.has_answer()
    cluster.control("POST", "/v1/clock/advance", {"ms": 1})
    assert wire.answer().topics[0].error_code is ErrorCode.NONE
    leader, epoch = led(cluster)
    assert leader in VOTERS[1:]
    assert epoch == 2
    (dead,) = (v for v in quorum(cluster.wire()).topics[0].partitions[0].current_voters if v.replica_id == 3000)
    assert (dead.log_end_offset, dead.last_fetch_timestamp, dead.last_caught_up_timestamp) == (-1, -1, -1)


def test_a_controller_that_stops_hands_over(cluster: InProcess) -> None:
    """At once, without the clock; started again, it follows and has all records."""
    cluster.control("POST", "/v1/clock/freeze")
    assert cluster.control("POST", "/v1/controllers/3000/stop")["controller"] in VOTERS[1:]
    assert create(cluster.wire(), "a")[0] is ErrorCode.NONE
    cluster.control("POST", "/v1/controllers/3000/start")
    (partition,) = quorum(cluster.wire()).topics[0].partitions
    assert {each.log_end_offset for each in partition.current_voters} == {partition.high_watermark}
    assert led(cluster)[1] == 2


def test_without_a_majority_requests_time_out(cluster: InProcess) -> None:
    """The leader resigns after 3 s; a broker answers REQUEST_TIMED_OUT after 60 s, and serves its clients all along."""
    cluster.control("POST", "/v1/clock/freeze")
    for each in VOTERS[1:]:
        cluster.control("POST", f"/v1/controllers/{each}/kill")
    assert info(cluster)["controller"] == 3000
    wire = cluster.wire()
    wire.send(ApiKey.CREATE_TOPICS, 4, creation("a"))
    cluster.control("POST", "/v1/clock/advance", {"ms": 3000})
    assert info(cluster)["controller"] == -1
    assert create(controller(cluster, 3000), "b") == (ErrorCode.NOT_CONTROLLER, "No controller appears to be active.")
    cluster.control("POST", "/v1/clock/advance", {"ms": 56_999})
    assert not wire.has_answer()
    cluster.control("POST", "/v1/clock/advance", {"ms": 1})
    assert wire.answer().topics[0].error_code is ErrorCode.REQUEST_TIMED_OUT
    cluster.control("POST", "/v1/controllers/3001/start")
    cluster.control("POST", "/v1/clock/advance", {"ms": 2000})
    assert create(cluster.wire(), "c")[0] is ErrorCode.NONE
    assert led(cluster)[1] == 2


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


def test_a_killed_broker_is_fenced_a_session_after_the_election(cluster: InProcess) -> None:
    """The next active controller knows of no earlier heartbeat, and gives all brokers a whole session."""
    cluster.control("POST", "/v1/clock/freeze")
    session_ms = 9000
    cluster.control("POST", "/v1/brokers/1/kill")
    cluster.control("POST", "/v1/clock/advance", {"ms": 5000})
    cluster.control("POST", "/v1/controllers/3000/kill")
    cluster.control("POST", "/v1/clock/advance", {"ms": 2000 + session_ms - 1})
    assert not info(cluster)["brokers"][0]["fenced"]
    cluster.control("POST", "/v1/clock/advance", {"ms": 1})
    assert info(cluster)["brokers"][0]["fenced"]
