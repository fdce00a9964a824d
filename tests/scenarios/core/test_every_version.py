"""Each version of the APIs of core that no other row asks in every version: what it does, and one error."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from broker.handlers import (
    add_raft_voter,
    alter_configs,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    create_acls,
    create_delegation_token,
    delete_acls,
    delete_records,
    describe_acls,
    describe_cluster,
    describe_configs,
    describe_delegation_token,
    describe_quorum,
    elect_leaders,
    expire_delegation_token,
    fetch,
    incremental_alter_configs,
    list_config_resources,
    list_offsets,
    offset_for_leader_epoch,
    produce,
    renew_delegation_token,
    sasl_handshake,
    update_features,
    write_txn_markers,
)
from protocol.acls import AclOperation, ResourceType
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener
from protocol.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from protocol.messages.describe_cluster import DescribeClusterRequest
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.describe_delegation_token import DescribeDelegationTokenOwner, DescribeDelegationTokenRequest
from protocol.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from protocol.messages.incremental_alter_configs import AlterableConfig as Change
from protocol.messages.incremental_alter_configs import AlterConfigsResource as Changed
from protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from protocol.messages.list_config_resources import ListConfigResourcesRequest
from protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.conftest import BrokerWith
from tests.scenarios import sasl
from tests.scenarios.core.asking import created, fetch_all, interest, produce_all, produced, records_of
from tests.scenarios.core.batches import batch
from tests.scenarios.guarded import Guarded, acl, acls_of, deleted, described, filtered
from tests.scenarios.guarded import created as acls_created
from tests.server import Server
from tests.versions import every_version
from tests.wire import Wire

RANDOM = UUID("5f0c7bb6-6a3c-4d0e-9a54-7c1f00c0ffee")
TOPIC, BROKER = 2, 4
DAY_MS = 86_400_000


@pytest.fixture
def wire(broker: Server) -> Wire:
    """A connection to a broker with the topic foo."""
    wire = broker.wire()
    created(wire, "foo")
    return wire


def metadata_id(wire: Wire, version: int, since: int) -> tuple[str | UUID, str | UUID]:
    """How a version names the new topic bar and one that is not there: by id since that version."""
    topic_id = created(wire, "bar")
    return (topic_id, RANDOM) if version >= since else ("bar", "none")


# --- records ---------------------------------------------------------------------------------------------------------


@every_version(produce.API, removed=False)
def test_records_are_produced(wire: Wire, version: int) -> None:
    """The base offset and the log's start, and where there is no such topic, by its name or by its id."""
    bar, none = metadata_id(wire, version, 13)
    for base in (0, 2):
        (answer,) = produce_all(wire, {bar: {0: batch(b"a", b"b")}}, version=version).values()
        assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, base)
        assert answer.log_start_offset == (0 if version >= 5 else -1)
    absent = ErrorCode.UNKNOWN_TOPIC_ID if version >= 13 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    (answer,) = produce_all(wire, {none: {0: batch(b"a")}}, version=version).values()
    assert (answer.error_code, answer.base_offset) == (absent, -1)


@every_version(fetch.API, removed=False)
def test_records_are_fetched(wire: Wire, version: int) -> None:
    """From an offset, up to the high watermark; beyond the end, and where there is no such topic."""
    bar, none = metadata_id(wire, version, 13)
    produced(wire, "bar", batch(b"a", b"b"))

    def fetched(who: str | UUID, offset: int) -> Any:
        ((answer,),) = [
            each.partitions for each in fetch_all(wire, {who: [interest(0, offset)]}, version=version).responses
        ]
        return answer

    answer = fetched(bar, 0)
    assert (answer.error_code, answer.high_watermark) == (ErrorCode.NONE, 2)
    assert answer.log_start_offset == (0 if version >= 5 else -1)
    assert [record.value for record in records_of(answer)] == [b"a", b"b"]
    assert fetched(bar, 3).error_code is ErrorCode.OFFSET_OUT_OF_RANGE
    absent = ErrorCode.UNKNOWN_TOPIC_ID if version >= 13 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert fetched(none, 0).error_code is absent


@every_version(list_offsets.API, removed=False)
def test_offsets_are_listed(wire: Wire, version: int) -> None:
    """The end and the start of a log, with the leader epoch since version 4; an epoch that is to come."""
    produced(wire, "foo", batch(b"a", b"b"))

    def listed(name: str, time: int, epoch: int = -1) -> tuple[int, int, int]:
        requested_topic = ListOffsetsTopic(name, [ListOffsetsPartition(0, time, epoch)])
        ((topic),) = wire.call(ApiKey.LIST_OFFSETS, version, ListOffsetsRequest(-1, [requested_topic])).topics
        (answer,) = topic.partitions
        return int(answer.error_code), answer.offset, answer.leader_epoch

    epoch = 0 if version >= 4 else -1
    assert listed("foo", -1) == (0, 2, epoch)
    assert listed("foo", -2) == (0, 0, epoch)
    assert listed("none", -1) == (3, -1, -1)
    assert listed("foo", -1, 7) == ((75, -1, -1) if version >= 4 else (0, 2, -1))


@every_version(offset_for_leader_epoch.API, removed=False)
def test_the_end_of_an_epoch_is_found(wire: Wire, version: int) -> None:
    """Of the current one; of none that is not there; not for a client with another epoch."""
    produced(wire, "foo", batch(b"a", b"b"))

    def ended(name: str, epoch: int, current: int = -1) -> tuple[int, int, int]:
        topic = OffsetForLeaderTopic(name, [OffsetForLeaderPartition(0, current, epoch)])
        response = wire.call(ApiKey.OFFSET_FOR_LEADER_EPOCH, version, OffsetForLeaderEpochRequest([topic], -2))
        ((answer,),) = [each.partitions for each in response.topics]
        return int(answer.error_code), answer.leader_epoch, answer.end_offset

    assert ended("foo", 0) == (0, 0, 2)
    assert ended("foo", 5) == (0, -1, -1)
    assert ended("foo", 0, 5) == (75, -1, -1)
    assert ended("none", 0) == (3, -1, -1)


@every_version(delete_records.API)
def test_records_are_deleted(wire: Wire, version: int) -> None:
    """Up to an offset; not beyond the high watermark."""
    produced(wire, "foo", batch(b"a", b"b"))

    def deleted_to(name: str, offset: int) -> tuple[int, int]:
        topic = DeleteRecordsTopic(name, [DeleteRecordsPartition(0, offset)])
        response = wire.call(ApiKey.DELETE_RECORDS, version, DeleteRecordsRequest([topic], 5000))
        ((answer,),) = [each.partitions for each in response.topics]
        return int(answer.error_code), answer.low_watermark

    assert deleted_to("foo", 3) == (1, -1)
    assert deleted_to("foo", 1) == (0, 1)
    assert deleted_to("none", 0) == (3, -1)


@every_version(write_txn_markers.API, removed=False)
def test_markers_are_written(wire: Wire, version: int) -> None:
    """At the partition's leader; a partition that is not there."""
    marker = WritableTxnMarker(7, 0, True, [WritableTxnMarkerTopic("foo", [0, 9])], 0)
    (answer,) = wire.call(ApiKey.WRITE_TXN_MARKERS, version, WriteTxnMarkersRequest([marker])).markers
    (topic,) = answer.topics
    codes = {each.partition_index: int(each.error_code) for each in topic.partitions}
    assert (answer.producer_id, topic.name, codes) == (7, "foo", {0: 0, 9: 3})


# --- settings --------------------------------------------------------------------------------------------------------


def retention(wire: Wire, version: int = 4) -> str | None:
    """What DescribeConfigs has as retention.ms of foo."""
    request = DescribeConfigsRequest([DescribeConfigsResource(TOPIC, "foo", ["retention.ms"])])
    (result,) = wire.call(ApiKey.DESCRIBE_CONFIGS, version, request).results
    assert result.error_code is ErrorCode.NONE
    (config,) = result.configs
    value: str | None = config.value
    return value


@every_version(alter_configs.API)
def test_settings_are_replaced(wire: Wire, version: int) -> None:
    """All of a resource; an invalid value."""

    def altered(value: str) -> int:
        change = AlterConfigsResource(TOPIC, "foo", [AlterableConfig("retention.ms", value)])
        (answer,) = wire.call(ApiKey.ALTER_CONFIGS, version, AlterConfigsRequest([change])).responses
        return int(answer.error_code)

    assert (altered("7"), retention(wire)) == (0, "7")
    assert (altered("x"), retention(wire)) == (40, "7")


@every_version(incremental_alter_configs.API)
def test_settings_are_altered(wire: Wire, version: int) -> None:
    """One of a resource; a topic that is not there."""

    def altered(name: str, value: str) -> int:
        change = Changed(TOPIC, name, [Change("retention.ms", 0, value)])
        request = IncrementalAlterConfigsRequest([change])
        (answer,) = wire.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, version, request).responses
        return int(answer.error_code)

    assert (altered("foo", "7"), retention(wire)) == (0, "7")
    assert (altered("none", "7"), altered("foo", "x")) == (3, 40)


@every_version(describe_configs.API, removed=False)
def test_settings_are_described(wire: Wire, version: int) -> None:
    """With type since version 3; a topic that is not there."""
    assert retention(wire, version) == "604800000"
    named = DescribeConfigsResource(TOPIC, "none", None)
    resource = DescribeConfigsResource(TOPIC, "foo", ["retention.ms"])
    absent, there = wire.call(ApiKey.DESCRIBE_CONFIGS, version, DescribeConfigsRequest([named, resource])).results
    assert (absent.error_code, list(absent.configs)) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, [])
    assert [each.config_type for each in there.configs] == [5 if version >= 3 else 0]


@every_version(list_config_resources.API)
def test_resources_with_settings_are_listed(wire: Wire, version: int) -> None:
    """Client metrics in version 0, all kinds since 1."""
    response = wire.call(ApiKey.LIST_CONFIG_RESOURCES, version, ListConfigResourcesRequest())
    resources = {(each.resource_type, each.resource_name) for each in response.config_resources}
    assert response.error_code is ErrorCode.NONE
    assert resources == ({(TOPIC, "foo"), (BROKER, "1"), (8, "1")} if version >= 1 else set())


# --- the cluster -----------------------------------------------------------------------------------------------------


@every_version(describe_cluster.API)
def test_the_cluster_is_described(wire: Wire, version: int) -> None:
    """Its brokers; its controllers have no endpoint here."""
    response = wire.call(ApiKey.DESCRIBE_CLUSTER, version, DescribeClusterRequest())
    assert (response.error_code, [each.broker_id for each in response.brokers]) == (ErrorCode.NONE, [1])
    if version >= 1:
        refused = wire.call(ApiKey.DESCRIBE_CLUSTER, version, DescribeClusterRequest(endpoint_type=2))
        assert refused.error_code is ErrorCode.MISMATCHED_ENDPOINT_TYPE


@every_version(describe_quorum.API)
def test_the_quorum_is_described(wire: Wire, version: int) -> None:
    """The one voter of the metadata; no other topic has one."""

    def quorum(name: str) -> Any:
        return wire.call(ApiKey.DESCRIBE_QUORUM, version, DescribeQuorumRequest([TopicData(name, [PartitionData(0)])]))

    ((answer,),) = [each.partitions for each in quorum("__cluster_metadata").topics]
    assert (answer.error_code, answer.leader_id, len(answer.current_voters)) == (ErrorCode.NONE, 1, 1)
    ((answer,),) = [each.partitions for each in quorum("foo").topics]
    assert answer.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@every_version(add_raft_voter.API)
def test_a_fixed_quorum_gets_no_voter(wire: Wire, version: int) -> None:
    """UNSUPPORTED_VERSION, as kraft.version is 0; another cluster's id comes first."""
    at = (Listener("CONTROLLER", "127.0.0.1", 9999),)

    def added(cluster: str | None) -> ErrorCode:
        request = AddRaftVoterRequest(cluster, 1000, 5, RANDOM, at)
        code: ErrorCode = wire.call(ApiKey.ADD_RAFT_VOTER, version, request).error_code
        return code

    assert (added(None), added("nope")) == (ErrorCode.UNSUPPORTED_VERSION, ErrorCode.INCONSISTENT_CLUSTER_ID)


@every_version(update_features.API)
def test_features_are_updated(wire: Wire, version: int) -> None:
    """A level that is not supported fails the request; results of features are answered up to version 1."""

    def updated(name: str, level: int) -> tuple[int, list[int]]:
        update = FeatureUpdateKey(name, level, False, 1)
        response = wire.call(ApiKey.UPDATE_FEATURES, version, UpdateFeaturesRequest(5000, [update]))
        return int(response.error_code), [int(each.error_code) for each in response.results]

    assert updated("transaction.version", 2) == (0, [] if version >= 2 else [0])
    assert updated("transaction.version", 99) == (95, [])


@every_version(elect_leaders.API)
def test_leaders_are_elected(wire: Wire, version: int) -> None:
    """The preferred one leads already; a topic that is not there."""
    topics = [TopicPartitions("foo", [0]), TopicPartitions("none", [0])]
    response = wire.call(ApiKey.ELECT_LEADERS, version, ElectLeadersRequest(topics, 5000))
    codes = {
        each.topic: [int(p.error_code) for p in each.partition_result] for each in response.replica_election_results
    }
    assert (response.error_code, codes) == (ErrorCode.NONE, {"foo": [84], "none": [3]})


@every_version(alter_partition_reassignments.API)
def test_partitions_are_reassigned(wire: Wire, version: int) -> None:
    """To the broker that has them; to none that is not there; nothing to cancel."""

    def reassigned(name: str, replicas: Sequence[int] | None) -> int:
        request = AlterPartitionReassignmentsRequest(
            5000, [ReassignableTopic(name, [ReassignablePartition(0, replicas)])]
        )
        response = wire.call(ApiKey.ALTER_PARTITION_REASSIGNMENTS, version, request)
        ((answer,),) = [each.partitions for each in response.responses]
        return int(answer.error_code)

    assert [reassigned("foo", [1]), reassigned("foo", [9]), reassigned("foo", None)] == [0, 39, 85]
    assert reassigned("none", [1]) == 3


@every_version(alter_replica_log_dirs.API, removed=False)
def test_replicas_stay_in_the_one_directory(wire: Wire, version: int) -> None:
    """A move to a directory that the broker does not have is LOG_DIR_NOT_FOUND in every version."""
    move = AlterReplicaLogDir("/no", [AlterReplicaLogDirTopic("foo", [0])])
    response = wire.call(ApiKey.ALTER_REPLICA_LOG_DIRS, version, AlterReplicaLogDirsRequest([move]))
    ((answer,),) = [each.partitions for each in response.results]
    assert answer.error_code is ErrorCode.LOG_DIR_NOT_FOUND


# --- rights ----------------------------------------------------------------------------------------------------------


@every_version(create_acls.API, describe_acls.API, delete_acls.API, removed=False)
def test_an_acl_comes_and_goes(guarded: Guarded, version: int) -> None:
    """Created, described, deleted; one without a name is none."""
    admin, wanted = guarded.admin, acl(AclOperation.READ, ResourceType.TOPIC, "t", host="9.9.9.9")
    nameless = acl(AclOperation.READ, ResourceType.TOPIC, "", host="9.9.9.9")
    codes = [each.error_code for each in acls_created(admin, wanted, nameless, version=version)]
    assert codes == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST]
    acls = acls_of(described(admin, ResourceType.TOPIC, "t", host="9.9.9.9", version=version))
    assert [(each[1], each[5]) for each in acls] == [("t", AclOperation.READ)]
    (result,) = deleted(admin, filtered(host="9.9.9.9"), version=version)
    assert (result.error_code, [each.resource_name for each in result.matching_acls]) == (ErrorCode.NONE, ["t"])
    assert acls_of(described(admin, host="9.9.9.9", version=version)) == set()


@pytest.fixture
def known(broker_with: BrokerWith) -> Wire:
    """A client that has authenticated as alice, of a cluster with delegation tokens."""
    return sasl.guarded(broker_with, **{"delegation.token.secret.key": "the key"}).known()


@every_version(create_delegation_token.API, describe_delegation_token.API, removed=False)
def test_a_token_is_created_and_described(known: Wire, version: int) -> None:
    """A delegation token is created and described for its owner, in every version."""
    request = CreateDelegationTokenRequest([], DAY_MS)
    token = known.call(ApiKey.CREATE_DELEGATION_TOKEN, version, request)
    assert (token.error_code, token.principal_name) == (ErrorCode.NONE, "alice")
    owners = [DescribeDelegationTokenOwner("User", "alice")]
    answer = known.call(ApiKey.DESCRIBE_DELEGATION_TOKEN, version, DescribeDelegationTokenRequest(owners))
    assert answer.error_code is ErrorCode.NONE
    assert token.token_id in [each.token_id for each in answer.tokens]


@every_version(renew_delegation_token.API, expire_delegation_token.API, removed=False)
def test_a_token_is_renewed_and_ended(known: Wire, version: int) -> None:
    """By its proof; any other is unknown."""
    proof = bytes(known.call(ApiKey.CREATE_DELEGATION_TOKEN, 3, CreateDelegationTokenRequest([], DAY_MS)).hmac)
    codes = [
        known.call(ApiKey.RENEW_DELEGATION_TOKEN, version, RenewDelegationTokenRequest(each, -1)).error_code
        for each in (proof, b"no")
    ]
    assert codes == [ErrorCode.NONE, ErrorCode.DELEGATION_TOKEN_NOT_FOUND]
    codes = [
        known.call(ApiKey.EXPIRE_DELEGATION_TOKEN, version, ExpireDelegationTokenRequest(proof, -1)).error_code
        for _ in range(2)
    ]
    assert codes == [ErrorCode.NONE, ErrorCode.DELEGATION_TOKEN_NOT_FOUND]


@every_version(sasl_handshake.API)
def test_a_mechanism_is_agreed_on(broker_with: BrokerWith, version: int) -> None:
    """Or refused, with those that there are."""
    guarded = sasl.guarded(broker_with)
    assert sasl.handshake(guarded.stranger(), "PLAIN", version).error_code is ErrorCode.NONE
    refused = sasl.handshake(guarded.stranger(), "NONE", version)
    assert (refused.error_code, list(refused.mechanisms)) == (ErrorCode.UNSUPPORTED_SASL_MECHANISM, sasl.MECHANISMS)
