"""Dead-letter queues of share groups (KIP-1191), as a real Apache Kafka 4.4.0 has them."""

from uuid import UUID

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.read_share_group_state import PartitionData, ReadShareGroupStateRequest, ReadStateData
from protocol.records.records import Record
from tests.conftest import BrokerWith
from tests.scenarios.core.asking import created, exists, fetch, produced, records_of
from tests.scenarios.core.batches import batch
from tests.scenarios.groups.sharers import (
    ACCEPT,
    REJECT,
    RELEASE,
    SHARE_SETTINGS,
    SHARES,
    Sharer,
    configure,
    initialize,
    start_and_done,
)
from tests.server import Server, until
from tests.wire import Wire

QUEUE = "dlq.orders"
AUTO_CREATE = {"errors.deadletterqueue.auto.create.topics.enable": "true"}
ENABLED = {"errors_deadletterqueue_group_enable": "true"}
REJECTED, LIMIT_REACHED = b"Offset rejected by client.", b"Offset delivery count exceeded the threshold."
ARCHIVED = 4
TOPIC_RESOURCE = 2


def subscribed(server: Server, partitions: int = 1, partition: int = 0, **configs: str) -> Sharer:
    """A member that has acquired the ten records of a partition; the group names a dead-letter queue."""
    wire = server.wire()
    topic_id = created(wire, "foo", partitions, retention_ms="-1")
    produced(wire, "foo", batch(*[b"%d" % each for each in range(10)]), partition=partition)
    names = {"errors_deadletterqueue_topic_name": QUEUE, "share_auto_offset_reset": "earliest", **configs}
    configure(wire, **names)
    initialize(wire, topic_id, *range(partitions))
    member = Sharer(server.wire(), topic_id, partitions=(partition,))
    assert member.first()
    return member


def dead(wire: Wire, count: int, partition: int = 0) -> list[Record]:
    """The records of the queue, once there are so many."""

    def read() -> list[Record] | None:
        if not exists(wire, QUEUE):
            return None
        records = records_of(fetch(wire, QUEUE, partition=partition))
        return records if len(records) >= count else None

    return until(read, "dead records")


def states(wire: Wire, topic_id: UUID, partition: int = 0) -> list[tuple[int, int, int, int]]:
    """First and last offset, state and delivery count of what the share coordinator has."""
    request = ReadShareGroupStateRequest(SHARES, [ReadStateData(topic_id, [PartitionData(partition, 0)])])
    state = wire.call(ApiKey.READ_SHARE_GROUP_STATE, 0, request).results[0].partitions[0]
    return [
        (each.first_offset, each.last_offset, each.delivery_state, each.delivery_count) for each in state.state_batches
    ]


@pytest.fixture
def server(broker_with: BrokerWith) -> Server:
    """A broker that creates dead-letter queues."""
    return broker_with(settings={**SHARE_SETTINGS, **AUTO_CREATE})


def test_a_rejected_record_is_written_to_the_queue(server: Server) -> None:
    """With headers that name its source, without key and value; then it is archived."""
    member = subscribed(server)
    assert member.ack(3, 3, REJECT) is ErrorCode.NONE
    (record,) = dead(member.wire, 1)
    assert (record.key, record.value) == (None, None)
    assert list(record.headers) == [
        ("__dlq.errors.topic", b"foo"),
        ("__dlq.errors.partition", b"0"),
        ("__dlq.errors.offset", b"3"),
        ("__dlq.errors.group", b"queue"),
        ("__dlq.errors.delivery.count", b"1"),
        ("__dlq.errors.message", REJECTED),
    ]
    until(lambda: states(member.wire, member.topic_id) == [(3, 3, ARCHIVED, 1)], "the record is archived")


def test_the_queue_is_created_with_its_settings(server: Server) -> None:
    """The broker's default number of partitions, and the two settings that Kafka gives it."""
    member = subscribed(server)
    assert member.ack(0, 9, REJECT) is ErrorCode.NONE
    assert [list(dict(each.headers).values())[2] for each in dead(member.wire, 10)] == [b"%d" % n for n in range(10)]
    names = ["errors.deadletterqueue.group.enable", "message.timestamp.type"]
    request = DescribeConfigsRequest([DescribeConfigsResource(TOPIC_RESOURCE, QUEUE, names)])
    (described,) = member.wire.call(ApiKey.DESCRIBE_CONFIGS, 4, request).results
    assert sorted(each.value for each in described.configs) == ["CreateTime", "true"]
    until(lambda: start_and_done(member.wire, member.topic_id)[1] == 10, "all are done with")


def test_the_last_delivery_is_written_to_the_queue(server: Server) -> None:
    """A record that is released as often as it may be delivered."""
    member = subscribed(server, share_delivery_count_limit="2")
    assert member.ack(1, 9, ACCEPT) is ErrorCode.NONE
    assert member.ack(0, 0, RELEASE) is ErrorCode.NONE
    assert until(lambda: member.acquired(max_wait_ms=100), "the record again") == [(0, 0, 2)]
    assert member.ack(0, 0, RELEASE) is ErrorCode.NONE
    (record,) = dead(member.wire, 1)
    headers = dict(record.headers)
    assert (headers["__dlq.errors.delivery.count"], headers["__dlq.errors.message"]) == (b"2", LIMIT_REACHED)
    until(lambda: start_and_done(member.wire, member.topic_id)[1] == 10, "all are done with")


def test_the_end_of_the_last_connection_gives_a_record_up_once(server: Server) -> None:
    """It is archived, so that who comes next does not write it to the queue again."""
    member = subscribed(server, share_delivery_count_limit="2")
    assert member.ack(1, 9, ACCEPT) is ErrorCode.NONE
    assert member.ack(0, 0, RELEASE) is ErrorCode.NONE
    assert until(lambda: member.acquired(max_wait_ms=100), "the record again") == [(0, 0, 2)]
    wire = server.wire()
    member.wire.close()
    dead(wire, 1)
    until(lambda: start_and_done(wire, member.topic_id)[1] == 10, "all are done with")
    following = Sharer(server.wire(), member.topic_id, "m2")
    produced(wire, "foo", batch(b"10"))
    assert following.first() == [(10, 10, 1)]
    assert following.ack(10, 10, REJECT) is ErrorCode.NONE
    headers = [dict(each.headers) for each in dead(wire, 2)]
    assert [each["__dlq.errors.offset"] for each in headers] == [b"0", b"10"]


def test_keys_and_values_are_copied_if_the_group_asks_for_it(server: Server) -> None:
    """Without the headers of the original."""
    member = subscribed(server, errors_deadletterqueue_copy_record_enable="true")
    assert member.ack(4, 5, REJECT) is ErrorCode.NONE
    assert [each.value for each in dead(member.wire, 2)] == [b"4", b"5"]


def test_the_partition_is_that_of_the_source_modulo_the_queues(server: Server) -> None:
    """Partition 4 of five goes to partition 1 of three."""
    wire = server.wire()
    created(wire, QUEUE, 3, 1, **ENABLED)
    member = subscribed(server, 5, 4)
    assert member.ack(0, 0, REJECT) is ErrorCode.NONE
    (record,) = dead(member.wire, 1, partition=1)
    assert dict(record.headers)["__dlq.errors.partition"] == b"4"


@pytest.mark.parametrize(
    ("name", "configs"),
    [("other", ENABLED), (QUEUE, {})],
    ids=["name without the prefix", "topic without the setting"],
)
def test_a_queue_that_may_not_be_used(server: Server, name: str, configs: dict[str, str]) -> None:
    """The record is archived without it; the acknowledgement succeeds."""
    wire = server.wire()
    created(wire, name, 1, 1, **configs)
    member = subscribed(server, errors_deadletterqueue_topic_name=name)
    assert member.ack(3, 3, REJECT) is ErrorCode.NONE
    until(lambda: states(wire, member.topic_id) == [(3, 3, ARCHIVED, 1)], "the record is archived")
    assert records_of(fetch(wire, name)) == []


def test_no_queue_is_created_without_the_setting(broker_with: BrokerWith) -> None:
    """errors.deadletterqueue.auto.create.topics.enable is false by default."""
    server = broker_with(settings=SHARE_SETTINGS)
    member = subscribed(server)
    assert member.ack(3, 3, REJECT) is ErrorCode.NONE
    until(lambda: states(member.wire, member.topic_id) == [(3, 3, ARCHIVED, 1)], "the record is archived")
    assert not exists(member.wire, QUEUE)


def test_accepted_records_are_not_written(server: Server) -> None:
    """Nor released ones that may be delivered again; the queue is not even created."""
    member = subscribed(server)
    assert member.ack(0, 4, ACCEPT) is ErrorCode.NONE
    assert member.ack(5, 9, RELEASE) is ErrorCode.NONE
    assert not exists(member.wire, QUEUE)
