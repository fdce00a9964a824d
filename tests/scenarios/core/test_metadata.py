"""What a cluster reports of itself: Metadata, DescribeTopicPartitions, DescribeCluster, DescribeLogDirs (core I.2)."""

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.describe_cluster import DescribeClusterRequest
from protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponseTopic
from tests.conftest import BrokerWith
from tests.scenarios.core.asking import RANDOM_ID, created, metadata, metadata_by_id, produced
from tests.scenarios.core.batches import sized
from tests.server import Server, until
from tests.wire import Wire

ALL_OPERATIONS = 3576
NOT_ASKED = -(2**31)


@pytest.mark.parametrize(
    ("version", "topics", "listed"),
    [(0, (), ["foo"]), (1, (), []), (1, None, ["foo"]), (12, (), []), (12, None, ["foo"])],
)
def test_MET_01_all_topics_or_none(
    broker: Server, version: int, topics: tuple[MetadataRequestTopic, ...] | None, listed: list[str]
) -> None:
    """In v0 an empty list means all; from v1 on null does, and empty means none."""
    wire = broker.wire()
    created(wire, "foo", 3)
    response = wire.call(ApiKey.METADATA, version, MetadataRequest(topics))
    assert [each.name for each in response.topics] == listed
    assert [each.node_id for each in response.brokers] == [1]


def test_MET_02_a_missing_topic_is_created_after_a_retriable_error(broker_with: BrokerWith) -> None:
    """First UNKNOWN_TOPIC_OR_PARTITION, then the topic with num.partitions partitions."""
    broker = broker_with(settings={"num.partitions": 3})
    wire = broker.wire()
    (first,) = metadata(wire, "new", version=9, auto_create=True)
    assert (first.error_code, first.partitions) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ())

    def there() -> MetadataResponseTopic | None:
        (topic,) = metadata(wire, "new", version=9)
        return topic if topic.error_code is ErrorCode.NONE else None

    created_topic = until(there, "the topic")
    assert sorted((p.partition_index, p.leader_id, p.leader_epoch, p.error_code) for p in created_topic.partitions) == [
        (index, 1, 0, ErrorCode.NONE) for index in range(3)
    ]


def test_MET_02_nothing_is_created_where_the_broker_does_not_allow_it(broker_with: BrokerWith) -> None:
    """With auto.create.topics.enable=false Metadata creates no topic."""
    wire = broker_with(settings={"auto.create.topics.enable": "false"}).wire()
    for _ in range(2):
        (answer,) = metadata(wire, "new", auto_create=True)
        assert answer.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_MET_03_a_bad_name_is_never_created(broker: Server) -> None:
    """INVALID_TOPIC_EXCEPTION, and no topic afterwards."""
    wire = broker.wire()
    (answer,) = metadata(wire, "a b", auto_create=True)
    assert answer.error_code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert wire.call(ApiKey.METADATA, 12, MetadataRequest(None)).topics == ()


@pytest.mark.parametrize(
    ("name", "code"),
    [("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), ("a/b", ErrorCode.INVALID_TOPIC_EXCEPTION)],
)
def test_MET_04_a_missing_topic_is_returned_without_an_id(broker: Server, name: str, code: ErrorCode) -> None:
    """A missing topic has a zero id if auto-creation is not requested."""
    (answer,) = metadata(broker.wire(), name)
    assert (answer.error_code, answer.name, answer.topic_id, answer.partitions) == (code, name, None, ())


def test_MET_05_topics_can_be_asked_for_by_id(broker: Server) -> None:
    """A known id gets its name; an unknown one comes back with no name."""
    wire = broker.wire()
    topic_id = created(wire, "foo")
    known, missing = sorted(metadata_by_id(wire, topic_id, RANDOM_ID), key=lambda each: each.error_code)
    assert (known.error_code, known.name, known.topic_id) == (ErrorCode.NONE, "foo", topic_id)
    assert (missing.error_code, missing.name, missing.topic_id) == (ErrorCode.UNKNOWN_TOPIC_ID, None, RANDOM_ID)


@pytest.mark.parametrize("version", [10, 11])
def test_MET_06_versions_10_and_11_know_ids_but_do_not_take_them(broker: Server, version: int) -> None:
    """The whole request fails: INVALID_REQUEST on each topic, and no name where none was given."""
    wire = broker.wire()
    topic_id = created(wire, "foo")
    topics = [MetadataRequestTopic("foo"), MetadataRequestTopic("bar", topic_id)]
    response = wire.call(ApiKey.METADATA, version, MetadataRequest(topics))
    assert sorted((each.name, each.error_code) for each in response.topics) == [
        ("bar", ErrorCode.INVALID_REQUEST),
        ("foo", ErrorCode.INVALID_REQUEST),
    ]


@pytest.mark.parametrize(("included", "operations"), [(True, ALL_OPERATIONS), (False, NOT_ASKED)])
def test_MET_07_authorized_operations_are_returned_when_requested(
    broker: Server, included: bool, operations: int
) -> None:
    """Without an authorizer: every operation that a topic supports."""
    wire = broker.wire()
    created(wire, "foo")
    (answer,) = metadata(wire, "foo", version=8, include_topic_authorized_operations=included)
    assert answer.topic_authorized_operations == operations


def test_MET_08_a_topic_that_is_created_again_has_another_id(broker: Server) -> None:
    """The old id is unknown from then on."""
    wire = broker.wire()
    old = created(wire, "foo")
    wire.call(ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest(topics=[DeleteTopicState("foo")], timeout_ms=5000))
    new = created(wire, "foo")
    assert new != old
    ((by_old,), (by_new,)) = metadata_by_id(wire, old), metadata_by_id(wire, new)
    assert (by_old.error_code, by_new.error_code) == (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.NONE)


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_MET_09_a_restart_of_the_broker_raises_leader_epochs(broker: Server, how: str) -> None:
    """The leader goes and comes back: two changes of the leader field, each with an epoch (core B.2.2)."""
    created(broker.wire(), "foo", 3)
    broker.control("POST", f"/v1/brokers/1/{how}")
    broker.control("POST", "/v1/brokers/1/start")
    (answer,) = metadata(broker.wire(), "foo")
    assert [(p.leader_id, p.leader_epoch) for p in answer.partitions] == [(1, 2)] * 3


# --- DescribeTopicPartitions -----------------------------------------------------------------------------------------


def described(
    wire: Wire, *names: str, limit: int, cursor: Cursor | None = None
) -> tuple[list[tuple[str | None, list[int]]], tuple[str, int] | None]:
    """Topics with their partitions in the response, and the next cursor."""
    request = DescribeTopicPartitionsRequest([TopicRequest(name) for name in names], limit, cursor)
    response: DescribeTopicPartitionsResponse = wire.call(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, request)
    reported = [(each.name, [p.partition_index for p in each.partitions]) for each in response.topics]
    after = response.next_cursor
    return reported, None if after is None else (after.topic_name, after.partition_index)


def test_DTP_01_the_cursor_goes_on_inside_a_topic(broker: Server) -> None:
    """With two partitions at a time the cursor continues inside the topic."""
    wire = broker.wire()
    created(wire, "zoo", 2)
    created(wire, "foo", 3)
    assert described(wire, limit=2) == ([("foo", [0, 1])], ("foo", 2))
    assert described(wire, limit=2, cursor=Cursor("foo", 2)) == ([("foo", [2]), ("zoo", [0])], ("zoo", 1))
    assert described(wire, limit=2, cursor=Cursor("zoo", 1)) == ([("zoo", [1])], None)


def test_DTP_02_the_cursor_goes_on_at_the_next_topic(broker: Server) -> None:
    """The limit is reached exactly where a topic ends."""
    wire = broker.wire()
    created(wire, "foo", 3)
    created(wire, "zoo", 2)
    assert described(wire, limit=3) == ([("foo", [0, 1, 2])], ("zoo", 0))


def test_DTP_03_the_cursor_must_be_among_the_topics_asked_for(broker: Server) -> None:
    """INVALID_REQUEST on each topic of the request."""
    wire = broker.wire()
    created(wire, "foo")
    created(wire, "zoo")
    request = DescribeTopicPartitionsRequest([TopicRequest("foo")], 10, Cursor("zoo", 0))
    response = wire.call(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, request)
    assert [(each.name, each.error_code) for each in response.topics] == [("foo", ErrorCode.INVALID_REQUEST)]


# --- DescribeCluster, DescribeLogDirs --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "code"),
    [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)],
)
def test_DCL_01_a_broker_describes_brokers_only(broker: Server, kind: int, code: ErrorCode) -> None:
    """A broker does not describe controllers; there is no third kind."""
    response = broker.wire().call(ApiKey.DESCRIBE_CLUSTER, 1, DescribeClusterRequest(endpoint_type=kind))
    assert response.error_code is code
    assert response.error_message


def test_LOGD_01_log_directories_have_the_sizes_of_partitions(broker: Server) -> None:
    """One directory; a partition is as large as what was produced to it; all partitions are asked for with null."""
    wire = broker.wire()
    created(wire, "foo")
    produced(wire, "foo", sized(100))
    (directory,) = wire.call(ApiKey.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(None)).results
    assert directory.error_code is ErrorCode.NONE
    assert directory.log_dir
    assert directory.total_bytes > 0
    (reported,) = [each for each in directory.topics if each.name == "foo"]
    assert [(p.partition_index, p.partition_size, p.offset_lag, p.is_future_key) for p in reported.partitions] == [
        (0, 100, 0, False)
    ]
