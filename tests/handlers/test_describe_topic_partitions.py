"""DescribeTopicPartitions: core B.5, DTP-01 to DTP-03."""

import pytest

from broker.handlers.describe_topic_partitions import API
from broker.request.context import AclOperation, ResourceType
from protocol.errors import ErrorCode
from protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from tests.handlers.admin_harness import AdminStage

Place = tuple[str, int] | None


def stage() -> AdminStage:
    """foo with three partitions, zoo with two."""
    admin = AdminStage()
    admin.topic("zoo", [1], [1])
    admin.topic("foo", [1], [1], [1])
    return admin


def request(*names: str, limit: int = 2000, cursor: Place = None) -> DescribeTopicPartitionsRequest:
    """A request for these topics, or all, from the cursor on."""
    place = None if cursor is None else Cursor(*cursor)
    return DescribeTopicPartitionsRequest([TopicRequest(name) for name in names], limit, place)


def shape(answer: DescribeTopicPartitionsResponse) -> tuple[list[tuple[str | None, list[int]]], Place]:
    """Topics with their partitions, and where to go on."""
    topics = [(t.name, [p.partition_index for p in t.partitions]) for t in answer.topics]
    cursor = answer.next_cursor
    return topics, None if cursor is None else (cursor.topic_name, cursor.partition_index)


async def test_the_brokers_limit_holds_too() -> None:
    """max.request.partition.size.limit."""
    admin = AdminStage(1, {"max.request.partition.size.limit": "1"})
    admin.topic("t", [1], [1])
    assert shape(await admin.ask(API, request())) == ([("t", [0])], ("t", 1))


@pytest.mark.parametrize("cursor", [("fooz", 0), ("foo", -1)])
async def test_DTP_03_a_cursor_that_makes_no_sense(cursor: Place) -> None:
    """INVALID_REQUEST on every topic that was asked for."""
    answer = await stage().ask(API, request("foo", "zoo", cursor=cursor))
    assert [(t.name, t.error_code) for t in answer.topics] == [
        ("foo", ErrorCode.INVALID_REQUEST),
        ("zoo", ErrorCode.INVALID_REQUEST),
    ]


async def test_a_cursor_beyond_all_topics_needs_no_topic() -> None:
    """Without a list the topic may have gone; a negative partition is refused with nothing to put it on."""
    admin = stage()
    assert shape(await admin.ask(API, request(cursor=("gone", 0)))) == ([("zoo", [0, 1])], None)
    assert shape(await admin.ask(API, request(cursor=("foo", -1)))) == ([], None)


async def test_missing_illegal_and_hidden_topics() -> None:
    """Each has its error, denied ones last and with zero id; of all topics the hidden ones are left out."""
    admin = stage()
    denied = {(AclOperation.DESCRIBE, ResourceType.TOPIC, "foo")}
    answer = await admin.ask(API, request("foo", "a b", "nope", "zoo"), denied=denied)
    assert [(t.name, t.error_code) for t in answer.topics] == [
        ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("zoo", ErrorCode.NONE),
        ("foo", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ]
    assert answer.topics[-1].topic_id is None
    assert [t.name for t in (await admin.ask(API, request(), denied=denied)).topics] == ["zoo"]


async def test_a_partition_is_described_with_its_eligible_replicas() -> None:
    """KIP-966: who may lead without loss, who led last; without a leader it has no error, unlike in Metadata."""
    admin = AdminStage(2)
    topic = admin.topic("t", [2])
    admin.stop(2)
    (reported,) = (await admin.ask(API, request("t"))).topics
    assert (reported.topic_id, reported.is_internal, reported.topic_authorized_operations) == (topic.id, False, 3576)
    (partition,) = reported.partitions
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (
        ErrorCode.NONE,
        -1,
        1,
    )
    assert (partition.replica_nodes, partition.isr_nodes, partition.offline_replicas) == ((2,), (), (2,))
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ((2,), (2,))


async def test_an_empty_name_fails_unless_the_cursor_has_it_too() -> None:
    """As 4.3.1 and 4.4.0 answer: UNKNOWN_SERVER_ERROR for all, or INVALID_TOPIC_EXCEPTION for the one."""
    failed = await stage().ask(API, request("", "foo"), 0)
    assert [each.error_code for each in failed.topics] == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
    answer = await stage().ask(API, request("", "foo", cursor=("", 0)), 0)
    assert [(each.name, each.error_code) for each in answer.topics] == [
        ("", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("foo", ErrorCode.NONE),
    ]
