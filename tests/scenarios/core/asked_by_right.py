"""Requests of each API for a client without rights, and the rights that it is then given one by one (core G.8).

Requests are functions of the topics' ids and of producers: ``{"foo": UUID, "T": (producer id, epoch)}``.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from protocol.acls import CLUSTER_NAME
from protocol.acls import AclOperation as Op
from protocol.acls import ResourceType as Kind
from protocol.apis import ApiKey as Api
from protocol.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_configs,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    describe_acls,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_quorum,
    describe_topic_partitions,
    describe_transactions,
    elect_leaders,
    end_txn,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    sync_group,
    txn_offset_commit,
    unregister_broker,
    update_features,
    write_txn_markers,
)
from tests.scenarios.core.asking import fetch_request, interest, produce_request, topic
from tests.scenarios.core.batches import batch
from tests.scenarios.guarded import acl, filtered

Right = tuple[Op, Kind, str]
Known = Mapping[str, Any]
TOPICS = ("foo", "bar", "nope")
IDS = ("foo", "bar", "random")


class Case(NamedTuple):
    """A request of an API, and the rights that the client is given one after the other; ``what`` names the case."""

    api: Api
    version: int
    what: str
    request: Callable[[Known], Any]
    rights: tuple[Right, ...]

    @property
    def name(self) -> str:
        """Such as ``Fetch v12 by name``."""
        return f"{self.api.title} v{self.version} {self.what}".strip()


def cluster(operation: Op) -> Right:
    """A right on the cluster."""
    return operation, Kind.CLUSTER, CLUSTER_NAME


def on(operation: Op, name: str = "foo") -> Right:
    """A right on a topic."""
    return operation, Kind.TOPIC, name


def group(operation: Op, name: str = "g") -> Right:
    """A right on a group."""
    return operation, Kind.GROUP, name


def txn(operation: Op, name: str = "T") -> Right:
    """A right on a transactional id."""
    return operation, Kind.TRANSACTIONAL_ID, name


def pair(known: Known) -> tuple[int, int]:
    """The producer of T: its id and epoch."""
    producer_id, epoch = known["T"]
    return int(producer_id), int(epoch)


# --- requests that need more than a line -----------------------------------------------------------------------------


def _replica(version: int, where: str) -> Case:
    """Of a topic without replicas: a follower of an existing one would have to be one of its replicas."""

    def request(known: Known) -> Any:
        replica_fetch = fetch_request({known.get(where, where): [interest()]}, replica_id=1)
        replica_fetch.replica_state = fetch.ReplicaState(1, -1)
        return replica_fetch

    rights = on(Op.READ, "nope"), cluster(Op.CLUSTER_ACTION)
    return Case(Api.FETCH, version, "of a follower", request, rights)


def _named(*names: str, create: bool = False) -> Callable[[Known], Any]:
    topics = [metadata.MetadataRequestTopic(name) for name in names]
    return lambda _known: metadata.MetadataRequest(topics, create, True, True)


def _committed(name: str, topic_id: Any = None) -> Any:
    return offset_commit.OffsetCommitRequestTopic(
        name, [offset_commit.OffsetCommitRequestPartition(0, 1)], topic_id=topic_id
    )


def _fetched(known: Known) -> Any:
    topics = [offset_fetch.OffsetFetchRequestTopics("", [0], known[name]) for name in IDS]
    return offset_fetch.OffsetFetchRequest(groups=[offset_fetch.OffsetFetchRequestGroup("g", topics)])


def _of_two_groups(_known: Known) -> Any:
    topics = [offset_fetch.OffsetFetchRequestTopics(name, [0]) for name in TOPICS]
    both = [offset_fetch.OffsetFetchRequestGroup("g", topics), offset_fetch.OffsetFetchRequestGroup("h", None)]
    return offset_fetch.OffsetFetchRequest(groups=both)


def _join(_known: Known) -> Any:
    protocols = [join_group.JoinGroupRequestProtocol("range", b"")]
    return join_group.JoinGroupRequest("h", 30_000, "x", "consumer", protocols, 1000)


def _deleted(known: Known) -> Any:
    state = delete_topics.DeleteTopicState
    both = [state("foo"), state("nope"), state(None, known["bar"]), state(None, known["random"])]
    return delete_topics.DeleteTopicsRequest([], 5000, both)


def _epochs(_known: Known) -> Any:
    parts = [offset_for_leader_epoch.OffsetForLeaderPartition(0, -1, 0)]
    topics = [offset_for_leader_epoch.OffsetForLeaderTopic(name, parts) for name in TOPICS]
    return offset_for_leader_epoch.OffsetForLeaderEpochRequest(topics, -1)


def _added(*names: str) -> Callable[[Known], Any]:
    topics = [add_partitions_to_txn.AddPartitionsToTxnTopic(name, [0]) for name in names]
    return lambda known: add_partitions_to_txn.AddPartitionsToTxnRequest("T", *pair(known), topics)


def _added_by_a_broker(known: Known) -> Any:
    topics = [add_partitions_to_txn.AddPartitionsToTxnTopic("foo", [0])]
    one = add_partitions_to_txn.AddPartitionsToTxnTransaction("T", *pair(known), False, topics)
    return add_partitions_to_txn.AddPartitionsToTxnRequest("", 0, 0, [], [one])


def _marked(_known: Known) -> Any:
    topics = [write_txn_markers.WritableTxnMarkerTopic("nope", [0])]
    return write_txn_markers.WriteTxnMarkersRequest([write_txn_markers.WritableTxnMarker(99_999, 0, False, topics, 0)])


def _sent(known: Known) -> Any:
    parts = [txn_offset_commit.TxnOffsetCommitRequestPartition(0, 1)]
    topics = [txn_offset_commit.TxnOffsetCommitRequestTopic(name, parts) for name in TOPICS]
    return txn_offset_commit.TxnOffsetCommitRequest("T", "g", *pair(known), topics)


RESOURCES = ((2, "foo"), (2, "nope"), (4, "1"), (8, "1"), (16, "m"), (32, "g"))


def _configs(_known: Known) -> Any:
    resources = [describe_configs.DescribeConfigsResource(kind, name, []) for kind, name in RESOURCES]
    return describe_configs.DescribeConfigsRequest(resources)


def _altered(_known: Known) -> Any:
    resources = [alter_configs.AlterConfigsResource(kind, name, []) for kind, name in RESOURCES]
    return alter_configs.AlterConfigsRequest(resources, True)


def _altered_in_part(_known: Known) -> Any:
    resources = [incremental_alter_configs.AlterConfigsResource(kind, name, []) for kind, name in RESOURCES]
    return incremental_alter_configs.IncrementalAlterConfigsRequest(resources, True)


def _reassigned(_known: Known) -> Any:
    parts = [alter_partition_reassignments.ReassignablePartition(0, [1])]
    topics = [alter_partition_reassignments.ReassignableTopic("foo", parts)]
    return alter_partition_reassignments.AlterPartitionReassignmentsRequest(5000, topics)


def _moved(_known: Known) -> Any:
    topics = [alter_replica_log_dirs.AlterReplicaLogDirTopic(name, [0]) for name in ("foo", "nope")]
    return alter_replica_log_dirs.AlterReplicaLogDirsRequest([alter_replica_log_dirs.AlterReplicaLogDir("/no", topics)])


def _records(_known: Known) -> Any:
    parts = [delete_records.DeleteRecordsPartition(0, 0)]
    topics = [delete_records.DeleteRecordsTopic(name, parts) for name in TOPICS]
    return delete_records.DeleteRecordsRequest(topics, 5000)


def _grown(_known: Known) -> Any:
    topics = [create_partitions.CreatePartitionsTopic(name, 3) for name in TOPICS]
    return create_partitions.CreatePartitionsRequest(topics, 5000, True)


def _forgotten(_known: Known) -> Any:
    parts = [offset_delete.OffsetDeleteRequestPartition(0)]
    topics = [offset_delete.OffsetDeleteRequestTopic(name, parts) for name in TOPICS]
    return offset_delete.OffsetDeleteRequest("g", topics)


def _feature(_known: Known) -> Any:
    update = update_features.FeatureUpdateKey("transaction.version", 2, False, 1)
    return update_features.UpdateFeaturesRequest(5000, [update], True)


def _offsets(_known: Known) -> Any:
    parts = [list_offsets.ListOffsetsPartition(0, -1)]
    return list_offsets.ListOffsetsRequest(-1, [list_offsets.ListOffsetsTopic(name, parts) for name in TOPICS])


def _elected(_known: Known) -> Any:
    topics = [elect_leaders.TopicPartitions(name, [0]) for name in ("foo", "nope")]
    return elect_leaders.ElectLeadersRequest(topics, 5000)


def _new_topics(_known: Known) -> Any:
    names = ("n1", "n2", "foo", "__cluster_metadata", "dup", "dup")
    return create_topics.CreateTopicsRequest([topic(name) for name in names], 5000, True)


def _producers(_known: Known) -> Any:
    topics = [describe_producers.TopicRequest(name, [0]) for name in TOPICS]
    return describe_producers.DescribeProducersRequest(topics)


def _keys(kind: int, *keys: str) -> Callable[[Known], Any]:
    return lambda _known: find_coordinator.FindCoordinatorRequest(key_type=kind, coordinator_keys=keys)


def _quorum(_known: Known) -> Any:
    parts = [describe_quorum.PartitionData(0)]
    return describe_quorum.DescribeQuorumRequest([describe_quorum.TopicData("__cluster_metadata", parts)])


A_KEY = "g:AAAAAAAAAAAAAAAAAAAAEQ:0"
CASES = (
    Case(Api.PRODUCE, 9, "", lambda _k: produce_request({name: {0: batch(b"a")} for name in TOPICS}),
         (on(Op.DESCRIBE), on(Op.WRITE), on(Op.WRITE, "nope"))),
    Case(Api.PRODUCE, 13, "", lambda k: produce_request({k[name]: {0: batch(b"a")} for name in IDS}), (on(Op.WRITE),)),
    Case(Api.FETCH, 12, "", lambda _k: fetch_request({name: [interest()] for name in TOPICS}),
         (on(Op.DESCRIBE), on(Op.READ), on(Op.READ, "nope"))),
    Case(Api.FETCH, 13, "", lambda k: fetch_request({k[name]: [interest()] for name in IDS}), (on(Op.READ),)),
    _replica(12, "nope"), _replica(17, "random"),
    Case(Api.LIST_OFFSETS, 7, "", _offsets, (on(Op.DESCRIBE), on(Op.DESCRIBE, "nope"))),
    Case(Api.METADATA, 9, "by name", _named(*TOPICS),
         (on(Op.READ), on(Op.DESCRIBE, "nope"), cluster(Op.DESCRIBE), on(Op.DELETE))),
    Case(Api.METADATA, 12, "all", lambda _k: metadata.MetadataRequest(None, False, True, True), (on(Op.DESCRIBE),)),
    Case(Api.METADATA, 12, "to create", _named("foo", "new", "in valid", "__consumer_offsets", create=True),
         (on(Op.CREATE, "new"), on(Op.DESCRIBE, "in valid"), on(Op.DESCRIBE, "__consumer_offsets"),
          on(Op.DESCRIBE, "new"))),
    Case(Api.METADATA, 12, "to create anywhere", _named("new1", create=True),
         (on(Op.DESCRIBE, "new1"), cluster(Op.CREATE))),
    Case(Api.DESCRIBE_TOPIC_PARTITIONS, 0, "",
         lambda _k: describe_topic_partitions.DescribeTopicPartitionsRequest(
             [describe_topic_partitions.TopicRequest(name) for name in TOPICS]),
         (on(Op.DESCRIBE), on(Op.DESCRIBE, "nope"))),
    Case(Api.DESCRIBE_TOPIC_PARTITIONS, 0, "all",
         lambda _k: describe_topic_partitions.DescribeTopicPartitionsRequest([]), (on(Op.READ),)),
    Case(Api.DESCRIBE_CLUSTER, 2, "", lambda _k: describe_cluster.DescribeClusterRequest(True, 1, True),
         (cluster(Op.ALTER), cluster(Op.CLUSTER_ACTION))),
    Case(Api.OFFSET_COMMIT, 8, "",
         lambda _k: offset_commit.OffsetCommitRequest("g", -1, "", topics=[_committed(name) for name in TOPICS]),
         (group(Op.DESCRIBE), group(Op.READ), on(Op.DESCRIBE), on(Op.READ), on(Op.READ, "nope"))),
    Case(Api.OFFSET_COMMIT, 10, "",
         lambda k: offset_commit.OffsetCommitRequest("g", -1, "", topics=[_committed("", k[name]) for name in IDS]),
         (group(Op.READ), on(Op.READ))),
    Case(Api.OFFSET_FETCH, 7, "",
         lambda _k: offset_fetch.OffsetFetchRequest(
             "g", [offset_fetch.OffsetFetchRequestTopic(name, [0]) for name in TOPICS]),
         (group(Op.DESCRIBE), on(Op.DESCRIBE), on(Op.DESCRIBE, "nope"))),
    Case(Api.OFFSET_FETCH, 7, "all", lambda _k: offset_fetch.OffsetFetchRequest("g", None),
         (group(Op.READ), on(Op.DESCRIBE))),
    Case(Api.OFFSET_FETCH, 9, "of two groups", _of_two_groups, (group(Op.READ), on(Op.DESCRIBE), group(Op.READ, "h"))),
    Case(Api.OFFSET_FETCH, 10, "", _fetched, (group(Op.DESCRIBE), on(Op.DESCRIBE))),
    Case(Api.FIND_COORDINATOR, 2, "of a group", lambda _k: find_coordinator.FindCoordinatorRequest("g", 0),
         (group(Op.DESCRIBE),)),
    Case(Api.FIND_COORDINATOR, 4, "of groups", _keys(0, "g", "h"), (group(Op.READ), group(Op.DESCRIBE, "h"))),
    Case(Api.FIND_COORDINATOR, 4, "of a transaction", _keys(1, "T"), (txn(Op.DESCRIBE),)),
    Case(Api.FIND_COORDINATOR, 6, "of a share partition", _keys(2, A_KEY), (cluster(Op.CLUSTER_ACTION),)),
    Case(Api.JOIN_GROUP, 9, "", _join, (group(Op.DESCRIBE, "h"), group(Op.READ, "h"))),
    Case(Api.SYNC_GROUP, 5, "",
         lambda _k: sync_group.SyncGroupRequest("h", 1, "x", [], None, "consumer", "range"), (group(Op.READ, "h"),)),
    Case(Api.SYNC_GROUP, 5, "without a protocol", lambda _k: sync_group.SyncGroupRequest("h", 1, "x", []), ()),
    Case(Api.HEARTBEAT, 4, "", lambda _k: heartbeat.HeartbeatRequest("h", 1, "x"), (group(Op.READ, "h"),)),
    Case(Api.LEAVE_GROUP, 5, "",
         lambda _k: leave_group.LeaveGroupRequest("h", "", [leave_group.MemberIdentity("x")]), (group(Op.READ, "h"),)),
    Case(Api.DESCRIBE_GROUPS, 6, "", lambda _k: describe_groups.DescribeGroupsRequest(["g", "h"], True),
         (group(Op.DESCRIBE), group(Op.DELETE))),
    Case(Api.LIST_GROUPS, 5, "", lambda _k: list_groups.ListGroupsRequest(), (group(Op.READ), cluster(Op.DESCRIBE))),
    Case(Api.DELETE_GROUPS, 2, "", lambda _k: delete_groups.DeleteGroupsRequest(["h", "i"]),
         (group(Op.READ, "h"), group(Op.DELETE, "h"))),
    Case(Api.OFFSET_DELETE, 0, "", _forgotten,
         (group(Op.DELETE), on(Op.DESCRIBE), on(Op.READ), on(Op.READ, "nope"))),
    Case(Api.CREATE_TOPICS, 7, "", _new_topics,
         (on(Op.CREATE, "n1"), on(Op.DESCRIBE_CONFIGS, "n1"), on(Op.CREATE), cluster(Op.CREATE))),
    Case(Api.DELETE_TOPICS, 5, "", lambda _k: delete_topics.DeleteTopicsRequest(TOPICS, 5000),
         (on(Op.DESCRIBE), on(Op.DESCRIBE, "nope"))),
    Case(Api.DELETE_TOPICS, 6, "", _deleted, (on(Op.DESCRIBE), on(Op.DESCRIBE, "bar"), cluster(Op.DELETE))),
    Case(Api.DELETE_RECORDS, 2, "", _records, (on(Op.DESCRIBE), on(Op.DELETE), on(Op.DELETE, "nope"))),
    Case(Api.CREATE_PARTITIONS, 3, "", _grown, (on(Op.ALTER), on(Op.ALTER, "nope"))),
    Case(Api.INIT_PRODUCER_ID, 4, "without an id", lambda _k: init_producer_id.InitProducerIdRequest(None, 1000),
         (on(Op.WRITE, "any-topic"),)),
    Case(Api.INIT_PRODUCER_ID, 4, "no id, cluster", lambda _k: init_producer_id.InitProducerIdRequest(None, 1000),
         (cluster(Op.IDEMPOTENT_WRITE),)),
    Case(Api.INIT_PRODUCER_ID, 4, "", lambda _k: init_producer_id.InitProducerIdRequest("U", 1000),
         (txn(Op.DESCRIBE, "U"), txn(Op.WRITE, "U"))),
    Case(Api.OFFSET_FOR_LEADER_EPOCH, 4, "", _epochs,
         (on(Op.DESCRIBE), on(Op.DESCRIBE, "nope"), cluster(Op.CLUSTER_ACTION))),
    Case(Api.ADD_PARTITIONS_TO_TXN, 3, "", _added("foo", "bar", "nope", "__consumer_offsets"),
         (txn(Op.WRITE), on(Op.WRITE), on(Op.WRITE, "nope"), on(Op.WRITE, "bar"))),
    Case(Api.ADD_PARTITIONS_TO_TXN, 5, "", _added_by_a_broker, (txn(Op.WRITE), cluster(Op.CLUSTER_ACTION))),
    Case(Api.ADD_OFFSETS_TO_TXN, 4, "", lambda k: add_offsets_to_txn.AddOffsetsToTxnRequest("T", *pair(k), "g"),
         (group(Op.READ), txn(Op.WRITE))),
    Case(Api.TXN_OFFSET_COMMIT, 3, "", _sent,
         (group(Op.READ), txn(Op.WRITE), on(Op.DESCRIBE), on(Op.READ), on(Op.READ, "nope"))),
    Case(Api.END_TXN, 4, "", lambda k: end_txn.EndTxnRequest("T", *pair(k), False), (txn(Op.DESCRIBE), txn(Op.WRITE))),
    Case(Api.WRITE_TXN_MARKERS, 1, "", _marked, (cluster(Op.DESCRIBE), cluster(Op.ALTER))),
    Case(Api.WRITE_TXN_MARKERS, 1, "of a broker", _marked, (cluster(Op.CLUSTER_ACTION),)),
    Case(Api.DESCRIBE_PRODUCERS, 0, "", _producers, (on(Op.DESCRIBE), on(Op.READ), on(Op.READ, "nope"))),
    Case(Api.DESCRIBE_TRANSACTIONS, 0, "",
         lambda _k: describe_transactions.DescribeTransactionsRequest(["T", "V"]),
         (txn(Op.DESCRIBE), on(Op.DESCRIBE), txn(Op.DESCRIBE, "V"))),
    Case(Api.LIST_TRANSACTIONS, 1, "", lambda _k: list_transactions.ListTransactionsRequest(), (txn(Op.DESCRIBE),)),
    Case(Api.DESCRIBE_CONFIGS, 4, "", _configs,
         (on(Op.DESCRIBE_CONFIGS), on(Op.ALTER_CONFIGS, "nope"), group(Op.DESCRIBE_CONFIGS),
          cluster(Op.DESCRIBE_CONFIGS))),
    Case(Api.ALTER_CONFIGS, 2, "", _altered,
         (on(Op.ALTER_CONFIGS), on(Op.ALTER_CONFIGS, "nope"), group(Op.ALTER_CONFIGS), cluster(Op.ALTER_CONFIGS))),
    Case(Api.INCREMENTAL_ALTER_CONFIGS, 1, "", _altered_in_part,
         (on(Op.ALTER_CONFIGS), on(Op.ALTER_CONFIGS, "nope"), group(Op.ALTER_CONFIGS), cluster(Op.ALTER_CONFIGS))),
    Case(Api.LIST_CONFIG_RESOURCES, 1, "", lambda _k: list_config_resources.ListConfigResourcesRequest([16]),
         (cluster(Op.DESCRIBE), cluster(Op.DESCRIBE_CONFIGS))),
    Case(Api.ELECT_LEADERS, 2, "", _elected, (cluster(Op.DESCRIBE), cluster(Op.ALTER))),
    Case(Api.ALTER_PARTITION_REASSIGNMENTS, 0, "", _reassigned, (cluster(Op.DESCRIBE), cluster(Op.ALTER))),
    Case(Api.LIST_PARTITION_REASSIGNMENTS, 0, "",
         lambda _k: list_partition_reassignments.ListPartitionReassignmentsRequest(5000, None),
         (cluster(Op.DESCRIBE),)),
    Case(Api.ALTER_REPLICA_LOG_DIRS, 2, "", _moved, (cluster(Op.DESCRIBE), cluster(Op.ALTER))),
    Case(Api.DESCRIBE_LOG_DIRS, 4, "",
         lambda _k: describe_log_dirs.DescribeLogDirsRequest([describe_log_dirs.DescribableLogDirTopic("bar", [0])]),
         (cluster(Op.DESCRIBE),)),
    Case(Api.DESCRIBE_LOG_DIRS, 1, "",
         lambda _k: describe_log_dirs.DescribeLogDirsRequest([describe_log_dirs.DescribableLogDirTopic("bar", [0])]),
         (cluster(Op.DESCRIBE),)),
    Case(Api.DESCRIBE_QUORUM, 2, "", _quorum, (cluster(Op.DESCRIBE),)),
    Case(Api.UPDATE_FEATURES, 1, "", _feature, (cluster(Op.DESCRIBE), cluster(Op.ALTER))),
    Case(Api.UNREGISTER_BROKER, 0, "", lambda _k: unregister_broker.UnregisterBrokerRequest(77),
         (cluster(Op.DESCRIBE), cluster(Op.ALTER))),
    Case(Api.DESCRIBE_ACLS, 3, "",
         lambda _k: describe_acls.DescribeAclsRequest(Kind.USER, None, 3, None, None, Op.ANY, 1),
         (cluster(Op.ALTER_CONFIGS), cluster(Op.DESCRIBE))),
    Case(Api.CREATE_ACLS, 3, "",
         lambda _k: create_acls.CreateAclsRequest([acl(Op.READ, Kind.USER, "x", host="9.9.9.9")] * 2),
         (cluster(Op.DESCRIBE), cluster(Op.ALTER))),
    Case(Api.DELETE_ACLS, 3, "", lambda _k: delete_acls.DeleteAclsRequest([filtered(host="9.9.9.9")] * 2),
         (cluster(Op.DESCRIBE), cluster(Op.ALTER))),
)  # fmt: skip
