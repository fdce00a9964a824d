"""Metadata: its rules (core B.3 M1 to M8), and what each version returns."""

from uuid import UUID

import pytest

from broker.coordination.metadata.image import BrokerListener
from broker.handlers.metadata import API
from broker.request.context import AclOperation, ResourceType
from broker.settings.releases import release
from protocol.errors import ErrorCode
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponseTopic
from tests.handlers.admin_harness import CLUSTER_ID, AdminStage, FakeLog
from tests.versions import every_version

UNUSED_ID = UUID(int=5)
NOT_ASKED = -(2**31)
AT_ONCE = "understudy.auto.create.topics.at.once"
UNAVAILABLE = ErrorCode.LEADER_NOT_AVAILABLE
UNKNOWN, DENIED = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.TOPIC_AUTHORIZATION_FAILED
DESCRIBE, CREATE, TOPIC, CLUSTER = AclOperation.DESCRIBE, AclOperation.CREATE, ResourceType.TOPIC, ResourceType.CLUSTER


def names(*wanted: str, create: bool = False) -> MetadataRequest:
    """A request for topics by name."""
    return MetadataRequest([MetadataRequestTopic(name) for name in wanted], create)


def ids(*wanted: UUID) -> MetadataRequest:
    """A request for topics by id."""
    return MetadataRequest([MetadataRequestTopic(None, topic_id) for topic_id in wanted], False)


@every_version(API)
async def test_every_version_returns_brokers_and_partitions(version: int) -> None:
    """What a version has no field for is left at its default."""
    stage = AdminStage(2)
    topic = stage.topic("t", [2, 1])
    answer = await stage.ask(API, names("t"), version)
    assert [(b.node_id, b.host, b.port) for b in answer.brokers] == [(1, "b1", 9091), (2, "b2", 9092)]
    (metadata,) = answer.topics
    assert (metadata.error_code, metadata.name) == (ErrorCode.NONE, "t")
    assert metadata.topic_id == (topic.id if version >= 10 else None)
    (partition,) = metadata.partitions
    assert (partition.error_code, partition.leader_id) == (ErrorCode.NONE, 2)
    assert (partition.replica_nodes, partition.isr_nodes, partition.offline_replicas) == ((2, 1), (2, 1), ())
    assert partition.leader_epoch == (0 if version >= 7 else -1)
    assert answer.controller_id == (1 if version >= 1 else -1)
    assert answer.cluster_id == (CLUSTER_ID if version >= 2 else None)


@pytest.mark.parametrize(
    "wrong", [MetadataRequestTopic("t", UNUSED_ID), MetadataRequestTopic(None, UNUSED_ID), MetadataRequestTopic(None)]
)
@pytest.mark.parametrize("version", [10, 11])
async def test_M1_ids_are_not_for_versions_10_and_11(version: int, wrong: MetadataRequestTopic) -> None:
    """The whole request fails: every topic has the error, and no broker is listed."""
    stage = AdminStage()
    stage.topic("t")
    answer = await stage.ask(API, MetadataRequest([wrong, MetadataRequestTopic("t")], False), version)
    assert [(t.error_code, t.name) for t in answer.topics] == [
        (ErrorCode.INVALID_REQUEST, wrong.name or ""),
        (ErrorCode.INVALID_REQUEST, "t"),
    ]
    assert (answer.brokers, answer.cluster_id) == ((), None)


async def test_neither_name_nor_id_is_an_unexpected_failure() -> None:
    """Quirk of 4.3.1: UNKNOWN_SERVER_ERROR in v12, not INVALID_REQUEST."""
    answer = await AdminStage().ask(API, MetadataRequest([MetadataRequestTopic(None)], False), 12)
    assert [t.error_code for t in answer.topics] == [ErrorCode.UNKNOWN_SERVER_ERROR]


async def test_M2_M3_ids_win_over_names() -> None:
    """Unknown ids first, with null names; repeated ones once (core MET-05)."""
    stage = AdminStage()
    topic = stage.topic("t")
    stage.topic("u")
    request = ids(topic.id, UNUSED_ID, topic.id)
    request.topics = [*(request.topics or ()), MetadataRequestTopic("u")]
    answer = await stage.ask(API, request, 12)
    assert [(t.error_code, t.name, t.topic_id) for t in answer.topics] == [
        (ErrorCode.UNKNOWN_TOPIC_ID, None, UNUSED_ID),
        (ErrorCode.NONE, "t", topic.id),
    ]


@pytest.mark.parametrize(("operations", "created"), [({CLUSTER}, True), ({TOPIC}, True), ({CLUSTER, TOPIC}, False)])
async def test_M5_creation_needs_a_permission(operations: set[ResourceType], created: bool) -> None:
    """Metadata creates a topic with CREATE on the cluster or on the topic only."""
    stage = AdminStage()
    answer = await stage.ask(API, names("new", create=True), denied={(CREATE, kind) for kind in operations})
    assert [t.error_code for t in answer.topics] == [UNKNOWN if created else DENIED]
    assert ("new" in stage.image.topics) is created


async def test_M6_a_missing_topic_is_created_and_returned_the_next_time() -> None:
    """With the broker's defaults; internal topics in their own way (core MET-02)."""
    stage = AdminStage(1, {"num.partitions": "3", "offsets.topic.num.partitions": "4"})
    answer = await stage.ask(API, names("new", "__consumer_offsets", create=True))
    assert [(t.error_code, t.is_internal) for t in answer.topics] == [(UNKNOWN, False), (UNKNOWN, True)]
    assert {name: len(t.partitions) for name, t in stage.image.topics.items()} == {"new": 3, "__consumer_offsets": 4}
    assert stage.image.config(2, "__consumer_offsets")["cleanup.policy"] == "compact"


async def test_M6_with_zookeeper_a_topic_that_is_created_has_no_leader_yet() -> None:
    """Before 3.3: LEADER_NOT_AVAILABLE, or why it cannot be; a topic that may not be created is unknown."""
    stage = AdminStage(1, {"num.partitions": "3", "offsets.topic.num.partitions": "4"})
    stage.connection.release = release("2.7")
    answer = await stage.ask(API, names("new", "__consumer_offsets", "a b", create=True), 9)
    assert [t.error_code for t in answer.topics] == [UNAVAILABLE, UNAVAILABLE, ErrorCode.INVALID_TOPIC_EXCEPTION]
    assert {name: len(t.partitions) for name, t in stage.image.topics.items()} == {"new": 3, "__consumer_offsets": 4}
    answer = await stage.ask(API, names("never"), 9)
    assert [t.error_code for t in answer.topics] == [UNKNOWN]
    few = AdminStage(1, {"default.replication.factor": "2"})
    few.connection.release = release("2.7")
    answer = await few.ask(API, names("new", create=True), 9)
    assert [t.error_code for t in answer.topics] == [ErrorCode.INVALID_REPLICATION_FACTOR]


@pytest.mark.parametrize("emulated", [None, "2.7"])
async def test_a_created_topic_is_in_the_answer_if_a_setting_asks_for_it(emulated: str | None) -> None:
    """In its place among those that stay unknown or refused; its leader is known."""
    stage = AdminStage(1, {AT_ONCE: "true", "num.partitions": "2"})
    if emulated is not None:
        stage.connection.release = release(emulated)
    stage.topic("old")
    answer = await stage.ask(API, names("a b", "new", "old", create=True), 9)
    assert [(t.name, t.error_code) for t in answer.topics] == [
        ("old", ErrorCode.NONE),
        ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("new", ErrorCode.NONE),
    ]
    assert [(p.error_code, p.leader_id) for p in answer.topics[2].partitions] == [(ErrorCode.NONE, 1)] * 2
    few = AdminStage(1, {AT_ONCE: "true", "default.replication.factor": "2"})
    assert [t.error_code for t in (await few.ask(API, names("new", create=True))).topics] == [UNKNOWN]


async def test_a_lazy_cluster_does_not_answer_with_what_it_creates() -> None:
    """The option has precedence over the setting; the next request finds the topic."""
    stage = AdminStage(1, {AT_ONCE: "true"})
    stage.cluster.lazy_coordinators = True
    codes = [(await stage.ask(API, names("new", create=True))).topics[0].error_code for _ in range(2)]
    assert codes == [UNKNOWN, ErrorCode.NONE]


@pytest.mark.parametrize("version", [3, 4])
async def test_versions_before_4_always_want_creation(version: int) -> None:
    """Versions before 4, which have no field to forbid it, always ask for auto-creation."""
    stage = AdminStage()
    await stage.ask(API, names("new"), version)
    assert ("new" in stage.image.topics) is (version < 4)


async def test_cluster_operations_need_describe() -> None:
    """Without DESCRIBE on the cluster the field of its operations is 0."""
    stage, request = AdminStage(), MetadataRequest((), include_cluster_authorized_operations=True)
    assert (await stage.ask(API, request, 8)).cluster_authorized_operations == 8096
    assert (await stage.ask(API, request, 8, denied={(DESCRIBE, CLUSTER)})).cluster_authorized_operations == 0
    assert (await stage.ask(API, MetadataRequest(()), 8)).cluster_authorized_operations == NOT_ASKED


async def one(stage: AdminStage, version: int = 13) -> MetadataResponseTopic:
    """The answer for the topic t."""
    (topic,) = (await stage.ask(API, names("t"), version)).topics
    assert isinstance(topic, MetadataResponseTopic)
    return topic


async def test_a_partition_without_leader_has_its_real_epoch() -> None:
    """LEADER_NOT_AVAILABLE, leader -1, all replicas offline; the broker is not listed."""
    stage = AdminStage(2)
    stage.topic("t", [2])
    stage.stop(2)
    (partition,) = (await one(stage)).partitions
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (
        ErrorCode.LEADER_NOT_AVAILABLE,
        -1,
        1,
    )
    assert (partition.replica_nodes, partition.isr_nodes, partition.offline_replicas) == ((2,), (), (2,))
    assert [b.node_id for b in (await stage.ask(API, names("t"))).brokers] == [1]


@pytest.mark.parametrize(("version", "code"), [(5, ErrorCode.LEADER_NOT_AVAILABLE), (6, ErrorCode.LISTENER_NOT_FOUND)])
async def test_a_leader_without_the_listener_is_not_to_be_found(version: int, code: ErrorCode) -> None:
    """LISTENER_NOT_FOUND since v6, LEADER_NOT_AVAILABLE before."""
    stage = AdminStage(2)
    stage.arrive(2, {"OTHER": BrokerListener("elsewhere", 1)})
    stage.topic("t", [2])
    (partition,) = (await one(stage, version)).partitions
    assert (partition.error_code, partition.leader_id, partition.offline_replicas) == (code, -1, (2,))


async def test_v0_lists_live_replicas_only() -> None:
    """With REPLICA_NOT_AVAILABLE where one is missing."""
    stage = AdminStage(3)
    stage.topic("t", [1, 2, 3])
    stage.stop(3)
    (partition,) = (await one(stage, 0)).partitions
    assert (partition.error_code, partition.leader_id) == (ErrorCode.REPLICA_NOT_AVAILABLE, 1)
    assert (partition.replica_nodes, partition.isr_nodes) == ((1, 2), (1, 2))
    (partition,) = (await one(stage, 1)).partitions
    assert (partition.error_code, partition.replica_nodes) == (ErrorCode.NONE, (1, 2, 3))


async def test_a_replica_in_a_failed_directory_is_offline() -> None:
    """A replica in a failed directory is offline even while its broker lives."""
    stage = AdminStage(2)
    stage.topic("t", [1, 2])
    stage.cluster.partitions["t", 0].logs[2] = FakeLog(offline=True)
    (partition,) = (await one(stage)).partitions
    assert partition.offline_replicas == (2,)
