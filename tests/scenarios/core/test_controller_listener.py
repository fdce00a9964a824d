"""The controller's listener (KIP-919), as an Admin client with `bootstrap.controllers` sees it; compared with 4.3.1."""

from uuid import UUID

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.describe_cluster import DescribeClusterRequest
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.unregister_controller import UnregisterControllerRequest
from protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from protocol.messages.update_raft_voter import KRaftVersionFeature, Listener, UpdateRaftVoterRequest
from tests.conftest import BrokerWith
from tests.server import Server
from tests.wire import Wire, header

BROKERS, CONTROLLERS = 1, 2
BROKER, TOPIC = 4, 2
# Of the table of a real 4.3.1 and 4.4.0, without the APIs of brokers and other controllers.
SERVED = {
    *(17, 18, 19, 20, 29, 30, 31, 32, 33, 36, 37, 38, 39, 40, 41, 43, 44, 45, 46, 49, 50, 51, 55, 57, 60, 64, 80, 81),
    82,
}


@pytest.fixture
def broker(broker_with: BrokerWith) -> Server:
    """Two brokers and a controller."""
    return broker_with(brokers=2, controller_port=0)


def address(broker: Server) -> tuple[str, int]:
    """Where the controller listens."""
    first = broker.brokers[0]
    listeners = [each for each in first["listeners"] if each["name"] == "CONTROLLER"]
    return listeners[0]["host"], listeners[0]["port"]


def at_controller(broker: Server) -> Wire:
    """A connection to the controller, closed when the test is over."""
    return broker.wire_to("{}:{}".format(*address(broker)))


def quorum(wire: Wire) -> tuple[list[str], list[tuple[int, list[tuple[str, str, int]]]]]:
    """Directories of the voters, and the nodes with their listeners."""
    answer = wire.call(
        ApiKey.DESCRIBE_QUORUM, 2, DescribeQuorumRequest([TopicData("__cluster_metadata", [PartitionData(0)])])
    )
    voters = [str(each.replica_directory_id) for each in answer.topics[0].partitions[0].current_voters]
    return voters, [(n.node_id, [(at.name, at.host, at.port) for at in n.listeners]) for n in answer.nodes]


def test_it_lists_what_a_controller_serves(broker: Server) -> None:
    """In the brokers' versions; a broker lists more, but not UpdateRaftVoter, which voters send to the leader."""
    versions = ApiVersionsRequest("test", "1.0")
    own = at_controller(broker).call(ApiKey.API_VERSIONS, 3, versions)
    brokers = broker.wire().call(ApiKey.API_VERSIONS, 3, versions)
    listed = {each.api_key: (each.min_version, each.max_version) for each in own.api_keys}
    known = {each.api_key: (each.min_version, each.max_version) for each in brokers.api_keys}
    assert listed.keys() - {94} == SERVED
    assert listed.pop(82) == (0, 0)
    assert listed.items() <= known.items()
    assert {each.name: each.max_version_level for each in own.finalized_features} == {
        each.name: each.max_version_level for each in brokers.finalized_features
    }


def test_the_features_epoch_is_that_of_their_last_change(broker: Server) -> None:
    """A broker's epoch grows with every record of the metadata, a controller's with the features."""
    wire, request = at_controller(broker), ApiVersionsRequest("test", "1.0")
    before = wire.call(ApiKey.API_VERSIONS, 3, request).finalized_features_epoch
    wire.call(ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest([CreatableTopic("t", 1, 1)], 1000))
    assert wire.call(ApiKey.API_VERSIONS, 3, request).finalized_features_epoch == before
    updates = [FeatureUpdateKey("group.version", 0, upgrade_type=2)]
    assert not wire.call(ApiKey.UPDATE_FEATURES, 2, UpdateFeaturesRequest(1000, updates)).error_code
    assert wire.call(ApiKey.API_VERSIONS, 3, request).finalized_features_epoch > before


@pytest.mark.parametrize(
    "key", [ApiKey.METADATA, ApiKey.PRODUCE, ApiKey.FIND_COORDINATOR, ApiKey.DESCRIBE_CLIENT_QUOTAS]
)
def test_what_a_controller_does_not_serve_closes_the_connection(broker: Server, key: ApiKey) -> None:
    """Metadata first of all: clients find controllers by DescribeCluster."""
    wire = at_controller(broker)
    wire.send_frame(header(key, 9 if key == ApiKey.METADATA else 1) + bytes(20))
    wire.check_closed()


def test_each_end_describes_its_own_kind(broker: Server) -> None:
    """114 for the other kind (42 in v0, which has no such code), and 115 for an unknown one."""
    host, port = address(broker)
    wire = at_controller(broker)

    def describe(version: int, kind: int) -> tuple[int, str | None, int, list[tuple[int, str, int]]]:
        answer = wire.call(ApiKey.DESCRIBE_CLUSTER, version, DescribeClusterRequest(endpoint_type=kind))
        nodes = [(each.broker_id, each.host, each.port) for each in answer.brokers]
        return answer.error_code, answer.error_message, answer.controller_id, nodes

    other = "The request was sent to an endpoint of type CONTROLLER, but we wanted an endpoint of type BROKER"
    assert describe(2, CONTROLLERS) == (0, None, 1, [(1, host, port)])
    assert describe(1, BROKERS) == (ErrorCode.MISMATCHED_ENDPOINT_TYPE, other, -1, [])
    assert describe(0, BROKERS) == (ErrorCode.INVALID_REQUEST, other, -1, [])
    assert describe(1, 3) == (ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, "Unsupported endpoint type 3", -1, [])
    answer = broker.wire().call(ApiKey.DESCRIBE_CLUSTER, 1, DescribeClusterRequest())
    assert [each.broker_id for each in answer.brokers] == [1, 2]


def test_the_quorum_names_the_listener(broker: Server) -> None:
    """Also a broker does; with kraft.version 1 the voter's directory is known, and there is no way back."""
    host, port = address(broker)
    no_directory = "00000000-0000-0000-0000-000000000000"
    for wire in (at_controller(broker), broker.wire(2)):
        voters, nodes = quorum(wire)
        assert voters in ([no_directory], ["None"])
        assert nodes == [(1, [("CONTROLLER", host, port)])]
    up, down = FeatureUpdateKey("kraft.version", 1), FeatureUpdateKey("kraft.version", 0, upgrade_type=3)
    assert not broker.wire().call(ApiKey.UPDATE_FEATURES, 2, UpdateFeaturesRequest(1000, [up])).error_code
    voters, _ = quorum(at_controller(broker))
    assert voters not in ([no_directory], ["None"])
    assert quorum(broker.wire(2))[0] == voters
    refused = broker.wire().call(ApiKey.UPDATE_FEATURES, 2, UpdateFeaturesRequest(1000, [down]))
    assert refused.error_code is ErrorCode.INVALID_UPDATE_VERSION
    assert refused.error_message.endswith("Can't downgrade the version of this feature.")
    levels = broker.wire().call(ApiKey.API_VERSIONS, 3, ApiVersionsRequest("test", "1.0")).finalized_features
    assert ("kraft.version", 1) in {(each.name, each.max_version_level) for each in levels}


def test_a_controller_that_is_to_update_itself_closes_the_connection(broker: Server) -> None:
    """UpdateRaftVoter of the active controller: the process of a Kafka 4.4.0 ends; here the next request is served."""
    own = [Listener("CONTROLLER", "moved", 1)]

    def update(voter: int, epoch: int) -> UpdateRaftVoterRequest:
        return UpdateRaftVoterRequest(None, epoch, voter, UUID(int=1), own, KRaftVersionFeature(0, 1))

    wire = at_controller(broker)
    answer = wire.call(ApiKey.UPDATE_RAFT_VOTER, 0, update(5, 1))
    leader = answer.current_leader
    assert answer.error_code is ErrorCode.VOTER_NOT_FOUND
    assert (leader.leader_id, leader.leader_epoch, leader.host, leader.port) == (1, 1, *address(broker))
    wire.send(ApiKey.UPDATE_RAFT_VOTER, 0, update(1, 1))
    wire.check_closed()
    answer = at_controller(broker).call(ApiKey.UPDATE_RAFT_VOTER, 0, update(1, 0))
    assert answer.error_code is ErrorCode.FENCED_LEADER_EPOCH


def test_settings_are_read_and_altered_there(broker: Server) -> None:
    """Those of any registered broker; errors on ids have the controller's own text."""
    wire = at_controller(broker)

    def alter(kind: int, name: str, key: str, value: str) -> tuple[int, str | None]:
        change = AlterConfigsResource(kind, name, [AlterableConfig(key, 0, value)])
        (answer,) = wire.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest([change])).responses
        return answer.error_code, answer.error_message

    assert alter(BROKER, "2", "log.retention.ms", "77777") == (0, None)
    assert alter(BROKER, "3", "log.retention.ms", "77777") == (102, "No node with id 3 found.")
    assert alter(BROKER, "-1", "log.retention.ms", "77777") == (42, "Invalid negative broker ID.")
    assert alter(BROKER, "x", "log.retention.ms", "1") == (42, "Unable to parse broker name as a base 10 number.")
    assert alter(99, "x", "y", "z") == (35, "Unknown resource type 99.")
    shown = broker.wire(2).call(
        ApiKey.DESCRIBE_CONFIGS, 4, DescribeConfigsRequest([DescribeConfigsResource(BROKER, "2", ["log.retention.ms"])])
    )
    assert [each.value for each in shown.results[0].configs] == ["77777"]
    wanted = DescribeConfigsResource(BROKER, "1", ["controller.listener.names", "listeners"])
    shown = wire.call(ApiKey.DESCRIBE_CONFIGS, 4, DescribeConfigsRequest([wanted]))
    values = {each.name: each.value for each in shown.results[0].configs}
    assert values["controller.listener.names"] == "CONTROLLER"
    assert values["listeners"].endswith(",CONTROLLER://{}:{}".format(*address(broker)))


def test_it_outlives_its_broker_and_a_reset(broker: Server) -> None:
    """As a controller of its own process would; its connections stay open."""
    wire, request = at_controller(broker), DescribeClusterRequest(endpoint_type=CONTROLLERS)
    broker.control("POST", "/v1/brokers/1/kill")
    assert wire.call(ApiKey.DESCRIBE_CLUSTER, 1, request).controller_id == 1
    broker.control("POST", "/v1/reset")
    assert wire.call(ApiKey.DESCRIBE_CLUSTER, 1, request).controller_id == 1
    listed = broker.control("GET", "/v1/cluster")["brokers"]
    assert [each["name"] for each in listed[0]["listeners"]] == ["PLAINTEXT", "CONTROLLER"]
    assert [each["name"] for each in listed[1]["listeners"]] == ["PLAINTEXT"]
    assert (listed[0]["listeners"][1]["host"], listed[0]["listeners"][1]["port"]) == address(broker)
    journal = broker.control("GET", "/v1/journal?api=DescribeCluster")
    assert len(journal["entries"]) >= 1


@pytest.mark.parametrize(
    ("level", "code"), [(33, ErrorCode.CONTROLLER_ID_NOT_REGISTERED), (32, ErrorCode.UNSUPPORTED_VERSION)]
)
def test_a_controller_is_forgotten_by_4_4_alone(broker_with: BrokerWith, level: int, code: ErrorCode) -> None:
    """With metadata.version 4.4-IV2, and never the active one; before 4.4 the API is not there."""
    broker = broker_with(as_version="4.4", controller_port=0, features={"metadata.version": level})
    for wire in (at_controller(broker), broker.wire()):
        answers = [wire.call(ApiKey.UNREGISTER_CONTROLLER, 0, UnregisterControllerRequest(each)) for each in (5, 1)]
        assert [each.error_code for each in answers] == [code, ErrorCode.INVALID_REQUEST]
    assert answers[0].error_message in {
        "Controller ID 5 is not currently registered.",
        "The current MetadataVersion is too old to support controller unregistration.",
    }
    older = broker_with(as_version="4.3").wire()
    older.send_frame(header(94, 0) + bytes(5))
    older.check_closed()


def test_a_cluster_may_begin_with_recorded_voters(broker_with: BrokerWith) -> None:
    """`--feature kraft.version=1`; without a controller's listener the voter is found at its broker."""
    broker = broker_with(features={"kraft.version": 1})
    voters, nodes = quorum(broker.wire())
    assert len(voters[0]) == 36
    assert voters[0] != "00000000-0000-0000-0000-000000000000"
    assert [(name, f"{host}:{port}") for name, host, port in nodes[0][1]] == [("CONTROLLER", broker.addresses[0])]
    broker.control("POST", "/v1/reset")
    assert len(quorum(broker.wire())[0]) == 1
