"""Near misses in the report of a failed test and beside the journal's rows, each with a case where there is none."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

import understudy
from broker.control import near_misses
from broker.control.near_misses import NearMisses
from broker.steering.journal.entries import Decoded
from broker.steering.journal.ring import Entry
from control_api.spelling import suggestion
from protocol.apis import ApiKey
from protocol.codec import decode_header, encode_request
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponseTopic
from protocol.types import uuid_from_text
from tests.control.conftest import ControlPlaneOf
from tests.control.harness import ControlPlane
from tests.ports import free_ports
from tests.serving import until

if TYPE_CHECKING:
    from broker.control.watched import Watched

Consuming = Callable[..., Consumer]
E = ErrorCode
METADATA = encode_request(ApiKey.METADATA, 8, 1, "c", MetadataRequest())[4:]


class Nothing:
    """A cluster without topics, groups and faults."""

    def __init__(self) -> None:
        self.image, self.faults, self.own = SimpleNamespace(topics={}), SimpleNamespace(faults={}), None


@pytest.fixture
def consuming() -> Iterator[Consuming]:
    """``consuming(plane, "g", "t", client="c")``: a consumer that has its assignment; closed at the test's end."""
    with ExitStack() as stack:

        def assigned_consumer(
            plane: ControlPlane, group: str, topic: str, client: str = "c", *, joins: bool = True, **settings: object
        ) -> Consumer:
            names = {"bootstrap.servers": plane.bootstrap, "group.id": group, "client.id": client}
            consumer = Consumer({**names, "auto.offset.reset": "earliest", **settings})
            stack.callback(consumer.close)
            consumer.subscribe([topic])
            if joins:
                until(lambda: consumer.poll(0.05) or consumer.assignment(), "the assignment")
            return consumer

        yield assigned_consumer


def hints(plane: ControlPlane, **query: int) -> list[str]:
    """Of the report."""
    return list(plane.kafka.report(**query).hints)


def earlier(plane: ControlPlane, **query: int) -> list[str]:
    """The hints at consumers of earlier tests."""
    return [hint for hint in hints(plane, **query) if "earlier test" in hint]


def polled(consumer: Consumer, plane: ControlPlane, **query: int) -> list[str]:
    """Those hints, once a consumer has gone on with what it does."""
    consumer.poll(0.05)
    return earlier(plane, **query)


def beside(plane: ControlPlane, api: str) -> set[str]:
    """The hints beside the journal's rows of an API."""
    return {hint for entry in plane.kafka.journal.find(api=api) for hint in entry.hints}


def send(plane: ControlPlane, topic: str = "t", partition: int = 0, client: str = "app", **settings: object) -> None:
    """One record."""
    producer = Producer({"bootstrap.servers": plane.bootstrap, "client.id": client, **settings})
    producer.produce(topic, b"v", partition=partition)
    assert producer.flush(60) == 0


# --- names -----------------------------------------------------------------------------------------------------------


def test_a_topic_of_nearly_the_same_name_is_named(plane: ControlPlane) -> None:
    """In the report, and beside the row; nothing at a topic that is there."""
    plane.kafka.topics.create("orders")
    admin = AdminClient({"bootstrap.servers": plane.bootstrap})
    admin.describe_topics(TopicCollection(["orders"]))["orders"].result(60)
    assert plane.kafka.journal.find(api="Metadata", topic="orders")
    assert beside(plane, "Metadata") == set()
    assert hints(plane) == []
    with pytest.raises(KafkaException, match="UNKNOWN_TOPIC"):
        admin.describe_topics(TopicCollection(["order"]))["order"].result(60)
    wanted = "topic 'order' does not exist; did you mean orders?"
    assert beside(plane, "Metadata") == {wanted}
    assert hints(plane) == [wanted]


def test_names_are_compared_once_and_not_without_end(plane: ControlPlane) -> None:
    """A request may list thousands that do not exist, each of which would be compared with all topics."""
    answer = MetadataResponse(
        topics=[MetadataResponseTopic(E.UNKNOWN_TOPIC_OR_PARTITION, f"orders-{at}") for at in range(1000)]
    )
    known = Decoded(decode_header(METADATA), None, None, answer, None)
    compared: list[str] = []

    def counted(name: str, names: Iterable[str]) -> str:
        compared.append(name)
        return suggestion(name, names)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(near_misses, "suggestion", counted)
        near = NearMisses(cast("Watched", Nothing()), lambda _id: None)
        entry = Entry(1, 1, 1, 1, 1, METADATA, b"", 0, 0, None, "answered")
        nearest = [near.of(entry, known, "") for _ in range(3)]
    assert nearest[0] == nearest[1] == nearest[2]
    assert compared == [f"orders-{at}" for at in range(5)]
    asked_for = [MetadataRequestTopic(f"orders-{at}") for at in range(1000)]
    plane.server.wire().call(ApiKey.METADATA, 8, MetadataRequest(asked_for, allow_auto_topic_creation=False))
    named = [hint for hint in hints(plane) if "does not exist" in hint]
    assert (len(named), len(set(named))) == (20, 20)


def test_a_partition_beyond_the_last_one_has_a_hint(plane: ControlPlane) -> None:
    """With those that there are; a partition that there is has no hint."""

    def ask(partition: int) -> set[str]:
        topic = ListOffsetsTopic("t", [ListOffsetsPartition(partition, timestamp=-1)])
        plane.server.wire().call(ApiKey.LIST_OFFSETS, 8, ListOffsetsRequest(replica_id=-1, topics=[topic]))
        return beside(plane, "ListOffsets")

    assert ask(1) == set()
    assert ask(7) == {"topic 't' has partitions 0 to 1, but no partition 7"}


def test_the_id_of_a_topic_that_was_created_again_has_a_hint(plane: ControlPlane) -> None:
    """A client that asks by the id of before; the present id has no hint."""

    def ask(topic_id: str) -> set[str]:
        fetch_topic = FetchTopic(
            topic_id=uuid_from_text(topic_id), partitions=[FetchPartition(partition_max_bytes=100)]
        )
        request = FetchRequest(max_bytes=100, topics=[fetch_topic], session_epoch=-1)
        plane.server.wire().call(ApiKey.FETCH, 13, request)
        return beside(plane, "Fetch")

    former = plane.kafka.topics["u"].show().id
    plane.kafka.topics["u"].delete()
    plane.kafka.topics.create("u")
    assert ask(plane.kafka.topics["u"].show().id) == set()
    assert ask(former) == {"topic 'u' was deleted and created again: the client still has the old topic id"}


def test_a_group_that_does_not_exist_has_a_hint(plane: ControlPlane, consuming: Consuming) -> None:
    """With the one of nearly the same name; a group that is there has no hint."""
    consuming(plane, "orders-service", "t")
    admin = AdminClient({"bootstrap.servers": plane.bootstrap})
    admin.describe_consumer_groups(["orders-service"])["orders-service"].result(60)
    assert plane.kafka.journal.find(api="DescribeGroups")
    assert beside(plane, "DescribeGroups") == set()
    admin.describe_consumer_groups(["order-service"])["order-service"].result(60)
    wanted = "group 'order-service' does not exist; did you mean orders-service?"
    assert beside(plane, "DescribeGroups") == {wanted}
    assert wanted in hints(plane)


# --- faults ----------------------------------------------------------------------------------------------------------

CONDITIONS = [
    ({"api": "Produce", "topic": "u"}, "topic is u, the request's is t"),
    ({"api": "Produce", "topic": "t", "partition": 0}, "partition is 0, the request's is 1"),
    ({"topic": "t", "partition": 1, "client_id": "ap"}, "client id is ap, the request's is app"),
    ({"api": "Produce", "topic": "t", "versions": [0, 3]}, "version is 0 to 3, the request's is "),
    ({"api": "Produce", "topic": "t", "broker": 2}, "broker is 2, the request's is 1"),
    ({"api": "Produce", "topic": "t", "request": {"acks": 1}}, "acks is 1, the request's is -1"),
    ({"api": "Produce", "topic": "t", "partition": 1, "offset": 9}, "offset is 9, which the request does not reach"),
]


@pytest.mark.parametrize(("match", "difference"), CONDITIONS, ids=[text.partition(" is ")[0] for _, text in CONDITIONS])
def test_a_fault_of_which_one_condition_does_not_hold_is_a_near_miss(
    plane_of: ControlPlaneOf, match: Any, difference: str
) -> None:
    """Beside the request, and in the report."""
    plane = plane_of(topics=["t:2", "u:1"], brokers=2)
    leader = plane.kafka.topics["t"].show().partitions[1].leader
    match = {**match, **({"broker": 3 - leader} if "broker" in match else {})}
    difference = f"broker is {3 - leader}, the request's is {leader}" if "broker" in match else difference
    fault = plane.kafka.faults.add(**match, drop=True, optional=True)
    send(plane, partition=1)
    (hint,) = beside(plane, "Produce")
    assert hint.startswith(f"fault {fault.id} nearly matched this request: its {difference}")
    assert any(each.startswith(f"{hint}: Produce of client app, request ") for each in hints(plane))


def test_a_fault_that_does_not_fit_at_all_or_was_met_has_no_hint_beside_requests(plane: ControlPlane) -> None:
    """Two conditions that do not hold; the only one, which is every request's; all of them, which is a hit."""
    first = plane.kafka.faults.add(api="Produce", topic="u", client_id="other", drop=True, optional=True)
    second = plane.kafka.faults.add(client_id="other", drop=True, optional=True)
    met = plane.kafka.faults.add(api="Produce", topic="t", partition=1, delay_ms=1)
    send(plane, partition=1)
    assert met.show().hits == 1
    assert beside(plane, "Produce") == set()
    one, two = hints(plane)
    assert one.startswith(f"fault {first.id} matched no request, and none of the last ")
    assert two.startswith(f"fault {second.id} matched no request, and none of the last ")


def test_requests_that_a_fault_skips_or_came_too_late_for_have_hints(plane: ControlPlane) -> None:
    """As what they are; an API of which no request came, too."""
    send(plane, partition=1)
    late = plane.kafka.faults.add(api="Produce", topic="t", drop=True, optional=True)
    assert beside(plane, "Produce") == set()  # each request of before would have it
    (hint,) = hints(plane)
    assert hint.startswith(
        f"fault {late.id} matches this request, but was added after it: Produce of client app, request"
    )
    late.remove()
    skips = plane.kafka.faults.add(api="Produce", topic="t", skip=2, drop=True, optional=True)
    never = plane.kafka.faults.add(api="EndTxn", drop=True, optional=True)
    send(plane, partition=1)
    wanted = f"fault {skips.id} matches this request, which is one of the first 2 that it skips (skip)"
    assert beside(plane, "Produce") == {wanted}
    skipped, missing = hints(plane)
    assert skipped.startswith(wanted)
    assert missing.startswith(f"fault {never.id} matched no request: no EndTxn is among the last ")


def test_a_fault_without_any_request_is_not_compared_with_the_latest_0(plane: ControlPlane) -> None:
    """With an empty journal there is nothing among which its API could be."""
    plane.kafka.journal.clear()
    fault = plane.kafka.faults.add(api="EndTxn", drop=True, optional=True)
    assert hints(plane) == [f"fault {fault.id} matched no request: the journal has none to compare it with"]


# --- what a consumer waits for ---------------------------------------------------------------------------------------


def test_a_consumer_of_an_earlier_test_has_a_hint_when_another_one_is_in_its_group(
    plane: ControlPlane, consuming: Consuming
) -> None:
    """One that connected before `since`; not where both did, and not where it is alone."""
    consuming(plane, "g", "t", client="old")
    plane.kafka.clock.freeze()
    plane.kafka.clock.advance(ms=1)
    began = plane.kafka.report().now_ms
    plane.kafka.clock.thaw()
    assert not earlier(plane, since=began)
    until(lambda: plane.kafka.report().now_ms > began, "a later time")
    new = consuming(plane, "g", "t", client="new", joins=False)
    (hint,) = until(lambda: polled(new, plane, since=began), "the hint")
    assert hint.startswith("a consumer of an earlier test is still in group g: client old (connection ")
    assert hint.endswith("), which connected before this test began")
    assert not earlier(plane)
    later = plane.kafka.report().now_ms + 1
    assert not earlier(plane, since=later)


def test_a_consumer_that_outlived_a_reset_has_a_hint(plane: ControlPlane, consuming: Consuming) -> None:
    """It comes back to its group by itself, and takes partitions from the consumer of the present test."""
    old = consuming(plane, "g", "t", client="old")
    plane.kafka.reset()
    until(lambda: old.poll(0.05) or len(plane.kafka.groups.list()) == 1, "its return")
    assert not earlier(plane)
    new = consuming(plane, "g", "t", client="new", joins=False)
    (hint,) = until(lambda: polled(new, plane), "the hint")
    assert "still in group g: client old (connection " in hint
    assert hint.endswith("which connected before the last reset")


def test_a_consumer_that_a_reset_disconnected_has_a_hint_when_it_comes_back() -> None:
    """As in tests with a fixed port: its connection is new, but it names a member id that no group has given.

    librdkafka's consumers of the new protocol end with a fatal error instead: their group does not exist.
    """
    (port,) = free_ports(1)
    with understudy.start(topics={"t": 2}, port=port) as kafka, ExitStack() as stack:

        def member(client: str) -> Consumer:
            names = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "g", "client.id": client}
            consumer = Consumer({**names, "log_level": 0})
            stack.callback(consumer.close)
            consumer.subscribe(["t"])
            return consumer

        def earlier_hints() -> list[str]:
            return [hint for hint in kafka.report().hints if "earlier test" in hint]

        old = member("old")
        until(lambda: old.poll(0.05) or old.assignment(), "the assignment")
        kafka.reset(disconnect=True)
        until(lambda: old.poll(0.05) or len(kafka.groups.list()) == 1, "its return")
        assert not earlier_hints()
        new = member("new")

        def polled_both() -> list[str]:
            new.poll(0.05)
            old.poll(0.05)
            return earlier_hints()

        (hint,) = until(polled_both, "the hint")
        assert hint.startswith("a consumer of an earlier test is still in group g: client old (connection ")
        assert hint.endswith("), which connected before the last reset and reconnected")


def test_a_consumer_that_began_at_the_end_has_a_hint(plane: ControlPlane, consuming: Consuming) -> None:
    """With auto.offset.reset=latest, behind records; not with earliest, and not where there are no records."""
    send(plane, partition=1)
    first = consuming(plane, "first", "t", client="first")
    until(lambda: first.poll(0.05), "the record")
    assert first.get_watermark_offsets(TopicPartition("t", 1), timeout=60) == (0, 1)  # asks for the end, too
    consuming(plane, "empty", "u", client="empty", **{"auto.offset.reset": "latest"})
    assert not [hint for hint in hints(plane) if "no committed offset" in hint]
    late = consuming(plane, "late", "t", client="late", **{"auto.offset.reset": "latest"})
    wanted = (
        "group late had no committed offset, so client late started t-1 at offset 1, the log end, "
        "and skips the records before it: auto.offset.reset is latest"
    )
    until(lambda: late.poll(0.05) or wanted in hints(plane), "the hint")


def test_records_of_an_open_transaction_have_a_hint_if_a_consumer_reads_committed(
    plane: ControlPlane, consuming: Consuming
) -> None:
    """With the transactional id; not to one that reads uncommitted ones, and not once the transaction has ended."""
    producer = Producer({"bootstrap.servers": plane.bootstrap, "transactional.id": "x"})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("t", b"v", partition=1)
    assert producer.flush(60) == 0
    dirty = consuming(plane, "dirty", "t", **{"isolation.level": "read_uncommitted"})
    until(lambda: dirty.poll(0.05), "the record")
    dirty.close()
    assert not [hint for hint in hints(plane) if "read_committed" in hint]
    clean = consuming(plane, "clean", "t", **{"isolation.level": "read_committed"})
    wanted = "read_committed consumers do not get t-1 from offset 0 on until the transaction of x ends"
    until(lambda: clean.poll(0.05) or wanted in hints(plane), "the hint")
    producer.commit_transaction(60)
    until(lambda: clean.poll(0.05), "the record")
    assert wanted not in hints(plane)
