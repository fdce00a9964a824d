"""Topics, partitions and records over HTTP, in Python and in the shell, and what clients see when they are steered."""

from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.partitioner import murmur2
from tests.control.conftest import ControlPlaneOf
from tests.control.harness import ControlPlane
from tests.scenarios.core.batches import batch
from tests.serving import until
from tests.wire import Wire
from understudy import results

E = ErrorCode
T0 = "/v1/topics/t/partitions/0"


def produce(wire: Wire, *, acks: int = -1, timeout_ms: int = 1000, send: bool = False) -> Any:
    """One record to t-0; its error and offset."""
    data = [TopicProduceData("t", [PartitionProduceData(0, batch(b"v"))])]
    request = ProduceRequest(None, acks, timeout_ms, data)
    if send:
        wire.send(ApiKey.PRODUCE, 9, request)
        return None
    return outcome(wire.call(ApiKey.PRODUCE, 9, request))


def outcome(answer: Any) -> tuple[ErrorCode, int]:
    """Error and offset of the one partition."""
    (partition,) = answer.responses[0].partition_responses
    return partition.error_code, partition.base_offset


# --- looking ---------------------------------------------------------------------------------------------------------


def test_topics_are_shown_with_their_partitions(plane: ControlPlane) -> None:
    """By name, with offsets; the same over HTTP, in Python and in the shell."""
    produce(plane.server.wire())
    reported = plane.http("GET", "/v1/topics")["topics"]
    assert [(topic["name"], topic["internal"], len(topic["partitions"])) for topic in reported] == [
        ("t", False, 2), ("u", False, 1)]  # fmt: skip
    assert reported[0] == plane.http("GET", "/v1/topics/t")
    (first, second) = plane.kafka.topics.list()[0].partitions
    assert (first.leader, first.replicas, first.isr, first.high_watermark) == (1, (1,), (1,), 1)
    assert (second.high_watermark, second.log_end_offset) == (0, 0)
    assert plane.kafka.topics["t"].show().id == reported[0]["id"]
    assert [row["name"] for row in plane.ctl("topics", "list")["topics"]] == ["t", "u"]
    assert "HIGH_WATERMARK" in plane.ctl_text("topics", "show", "t")


def test_a_partition_shows_its_producers_and_transactions(plane: ControlPlane) -> None:
    """Open and aborted ones, as its leader knows them."""
    producer = Producer({"bootstrap.servers": plane.bootstrap, "transactional.id": "x"})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("t", b"a", partition=0)
    producer.flush(60)
    partition = plane.kafka.topics["t"].partitions[0].show()
    assert partition.last_stable_offset == 0
    (opened,) = partition.open_transactions
    assert (opened.txn_start_offset, opened.last_sequence) == (0, 0)
    producer.abort_transaction(60)
    partition = until(lambda: with_aborted(plane), "the abort marker")
    assert partition.open_transactions == ()
    assert partition.aborted_transactions == (results.AbortedTransaction(opened.producer_id, 0, 1),)
    assert partition.segments[0].base_offset == 0
    assert partition.size_bytes > 0
    assert plane.ctl("partitions", "show", "t", "0")["aborted_transactions"]


def with_aborted(plane: ControlPlane) -> results.Partition | None:
    """The partition, once it has an aborted transaction."""
    partition = plane.kafka.topics["t"].partitions[0].show()
    return partition if partition.aborted_transactions else None


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/v1/topics/tt", "no topic 'tt'; did you mean t?"),
        ("/v1/topics/t/partitions/2", "it has 0 to 1"),
        ("/v1/topics/t/partitions/x", "it has 0 to 1"),
        ("/v1/topics/t/partitions/0/records?isolation=none", "read_committed"),
        ("/v1/topics/t/partitions/0/records?offset=x", "whole number"),
    ],
)
def test_an_unknown_name_is_answered_with_the_known_ones(plane: ControlPlane, path: str, text: str) -> None:
    """Unknown names get the known ones: 404 in a path, 422 in a query."""
    status, problem = plane.refused("GET", path)
    assert status == (422 if "?" in path else 404)
    assert text in problem["detail"]


# --- records ---------------------------------------------------------------------------------------------------------


@pytest.mark.verb("records write")
def test_records_are_written_and_read_without_a_client(plane: ControlPlane) -> None:
    """With keys, headers, times and bytes that are no text; a real client reads the same."""
    topic = plane.kafka.topics["t"]
    (written,) = topic.write({"key": "k", "value": b"\xff", "partition": 1, "timestamp_ms": 5,
                              "headers": [{"key": "h", "value": "x"}, {"key": "h", "value": None}]})  # fmt: skip
    assert (written.partition, written.offset) == (1, 0)
    (record,) = topic.partitions[1].records()
    assert (record.key, record.value, record.timestamp_ms) == (b"k", b"\xff", 5)
    assert record.headers == (results.Header("h", b"x"), results.Header("h", None))
    consumer = Consumer({"bootstrap.servers": plane.bootstrap, "group.id": "g"})
    consumer.assign([TopicPartition("t", 1, 0)])
    read = consumer.poll(60)
    consumer.close()
    assert read is not None
    assert (read.key(), read.value(), read.headers()) == (b"k", b"\xff", [("h", b"x"), ("h", None)])


@pytest.mark.parametrize(
    ("key", "hashed"),
    [(b"21", -973932308), (b"foobar", -790332482), (b"a-little-bit-long-string", -985981536), (b"abc", 479470107)],
)
def test_keys_go_where_java_sends_them(key: bytes, hashed: int) -> None:
    """Kafka's own vectors of murmur2 (UtilsTest)."""
    assert murmur2(key) == hashed & 0xFFFFFFFF


def test_many_records_of_a_partition_are_appended_in_several_batches(plane: ControlPlane) -> None:
    """Each has its own offset, in the order in which they were sent."""
    plane.kafka.topics.create("many", partitions=2)
    topic = plane.kafka.topics["many"]
    records = [{"value": f"{number}", "partition": 0 if number % 4 else 1} for number in range(8000)]
    written = topic.write(*records)
    for partition, count in ((0, 6000), (1, 2000)):
        offsets = [each.offset for each in written if each.partition == partition]
        assert offsets == list(range(count))
        stored = topic.partitions[partition].records(limit=count)
        assert [int(each.value or b"") for each in stored] == [
            n for n in range(8000) if (n % 4 == 0) == bool(partition)
        ]


def test_records_without_a_partition_go_to_one_by_their_key(plane: ControlPlane) -> None:
    """In the order given; without a key in turn."""
    written = plane.ctl("records", "write", "t", '[{"value": "a"}, {"value": "b"}, {"key": "k"}, {"key": "k"}]')[
        "written"
    ]
    assert [row["partition"] for row in written[:2]] == [0, 1]
    assert written[2]["partition"] == written[3]["partition"]
    assert written[3]["offset"] == written[2]["offset"] + 1
    assert plane.http("GET", "/v1/topics/t/partitions/0/records")["records"][0]["value"] == "a"


def test_a_window_of_records_can_be_read(plane: ControlPlane) -> None:
    """From an offset, at most so many; a negative offset counts from the end."""
    plane.kafka.topics["u"].write(*[f"{number}" for number in range(10)])
    partition = plane.kafka.topics["u"].partitions[0]
    assert [r.value for r in partition.records(offset=3, limit=2)] == [b"3", b"4"]
    assert [r.value for r in partition.records(offset=-2)] == [b"8", b"9"]
    assert partition.records(offset=99) == []
    assert [r["value"] for r in plane.ctl("records", "read", "u", "0", "--offset", "8")["records"]] == ["8", "9"]


@pytest.mark.verb("records read")
def test_isolation_decides_which_records_are_read(plane: ControlPlane) -> None:
    """Markers and aborted records are there, and not for read_committed."""
    producer = Producer({"bootstrap.servers": plane.bootstrap, "transactional.id": "x"})
    producer.init_transactions(60)
    for value, commit in ((b"no", False), (b"yes", True)):
        producer.begin_transaction()
        producer.produce("t", value, partition=0)
        producer.flush(60)
        (producer.commit_transaction if commit else producer.abort_transaction)(10)
    partition = plane.kafka.topics["t"].partitions[0]
    until(lambda: len(partition.records()) == 4, "both markers")
    assert [(r.value, r.control) for r in partition.records() if r.control is None] == [(b"no", None), (b"yes", None)]
    assert [r.control for r in partition.records() if r.control] == ["abort", "commit"]
    assert [r.value for r in partition.records(isolation="read_committed")] == [b"yes"]


@pytest.mark.parametrize(
    ("records", "field"),
    [
        ([], "records"),
        (["v"], "records.0"),
        ([{"val": "v"}], "records.0.val"),
        ([{"value": 5}], "records.0.value"),
        ([{"value": "v", "partition": 7}], "records.0.partition"),
        ([{"value": "v", "timestamp_ms": "now"}], "records.0.timestamp_ms"),
        ([{"value": "v", "headers": {"a": "b"}}], "records.0.headers"),
    ],
)
def test_a_wrong_record_is_named_and_nothing_is_written(plane: ControlPlane, records: Any, field: str) -> None:
    """422 with the record and the field."""
    status, problem = plane.refused("POST", "/v1/topics/t/records", {"records": records})
    assert (status, problem["field"]) == (422, field)
    assert plane.kafka.topics["t"].partitions[0].records() == []


# --- leaders ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def three(plane_of: ControlPlaneOf) -> ControlPlane:
    """Three brokers; t has three replicas of two that must be in sync, u has one."""
    return plane_of(brokers=3, topics=["u:1"], settings={"default.replication.factor": 3, "min.insync.replicas": 2,
                                                        "num.partitions": 1})  # fmt: skip


@pytest.fixture
def replicated(three: ControlPlane) -> ControlPlane:
    """The same with the topic t."""
    Producer({"bootstrap.servers": three.bootstrap}).list_topics("t", 60)
    return three


def leader_of(plane: ControlPlane, topic: str = "t") -> int:
    """Who leads its partition 0."""
    return plane.kafka.topics[topic].partitions[0].show().leader


def test_a_leader_that_was_moved_stays_until_its_next_election(replicated: ControlPlane) -> None:
    """The rounds that return leaders to preferred replicas leave it, until its broker stops and another is elected."""
    partition = replicated.kafka.topics["t"].partitions[0]
    first, second, third = partition.show().replicas
    partition.move_leader(third)
    replicated.server.advance(600_000)
    assert partition.show().leader == third
    partition.set_isr([second, third])
    replicated.kafka.brokers[third].stop()
    assert partition.show().leader == second
    partition.set_isr([first, second])
    replicated.server.advance(600_000)
    assert partition.show().leader == first
    replicated.kafka.brokers[third].start()


@pytest.mark.verb("leader move")
def test_a_leader_moves_and_clients_follow(replicated: ControlPlane) -> None:
    """The epoch goes up by one; the old leader answers NOT_LEADER_OR_FOLLOWER, a real client finds the new one."""
    partition = replicated.kafka.topics["t"].partitions[0]
    before = partition.show()
    target = next(broker for broker in before.replicas if broker != before.leader)
    producer = Producer({"bootstrap.servers": replicated.bootstrap, "linger.ms": 0})
    producer.produce("t", b"before")
    assert producer.flush(60) == 0
    moved = partition.move_leader(target)
    assert (moved.leader, moved.leader_epoch) == (target, before.leader_epoch + 1)
    assert produce(replicated.server.wire(before.leader))[0] is E.NOT_LEADER_OR_FOLLOWER
    producer.produce("t", b"after")
    assert producer.flush(60) == 0
    assert [r.value for r in partition.records()] == [b"before", b"after"]


def test_a_partition_without_a_leader_is_given_one(replicated: ControlPlane) -> None:
    """A leader that was removed can be set again from the shell."""
    replicated.ctl("leader", "move", "t", "0", "null")
    assert leader_of(replicated) == -1
    assert produce(replicated.server.wire(1))[0] is E.NOT_LEADER_OR_FOLLOWER
    replicated.ctl("leader", "move", "t", "0", "2")
    assert leader_of(replicated) == 2
    assert produce(replicated.server.wire(2)) == (E.NONE, 0)


def test_a_broker_without_a_replica_gets_one(three: ControlPlane) -> None:
    """With its records: a topic of one replica can be led by any broker."""
    three.kafka.topics["u"].write("kept")
    before = three.kafka.topics["u"].partitions[0].show()
    target = before.leader % 3 + 1
    moved = three.http("POST", "/v1/topics/u/partitions/0/leader", {"broker": target})
    assert (moved["leader"], moved["isr"]) == (target, [target] if len(before.replicas) == 1 else moved["isr"])
    assert [r.value for r in three.kafka.topics["u"].partitions[0].records()] == [b"kept"]


def test_a_leader_has_to_be_a_broker_that_runs(replicated: ControlPlane) -> None:
    """404 for one that is not there, 409 for one that is down."""
    assert replicated.refused("POST", f"{T0}/leader", {"broker": 9})[0] == 404
    assert replicated.refused("POST", f"{T0}/leader", {})[1]["field"] == "broker"
    follower = next(b for b in (1, 2, 3) if b != leader_of(replicated) and b != 1)
    replicated.kafka.brokers[follower].stop()
    status, problem = replicated.refused("POST", f"{T0}/leader", {"broker": follower})
    assert (status, "INELIGIBLE_REPLICA" in problem["detail"]) == (409, True)
    replicated.kafka.brokers[follower].start()


# --- replication -----------------------------------------------------------------------------------------------------


def test_too_few_in_sync_replicas_refuse_acks_all(replicated: ControlPlane) -> None:
    """NOT_ENOUGH_REPLICAS before the append; acks=1 does not ask; back in sync, everything is there."""
    leader = leader_of(replicated)
    wire = replicated.server.wire(leader)
    reported = replicated.http("POST", f"{T0}/isr", {"replicas": [leader]})
    assert (reported["isr"], len(reported["held"])) == ([leader], 2)
    assert produce(wire)[0] is E.NOT_ENOUGH_REPLICAS
    assert produce(wire, acks=1) == (E.NONE, 0)
    reported = replicated.http("POST", f"{T0}/isr", {"replicas": [1, 2, 3]})
    assert (sorted(reported["isr"]), reported["held"], reported["high_watermark"]) == ([1, 2, 3], [], 1)
    assert produce(wire) == (E.NONE, 1)


def test_a_follower_in_sync_that_is_held_holds_the_high_watermark(replicated: ControlPlane) -> None:
    """The producer waits until its timeout; consumers do not see the record until the follower has it."""
    leader = leader_of(replicated)
    wire = replicated.server.wire(leader)
    follower = next(b for b in (1, 2, 3) if b != leader)
    replicated.http("POST", f"{T0}/isr", {"replicas": [1, 2, 3], "held": [follower]})
    produce(wire, timeout_ms=30_000, send=True)
    until(lambda: replicated.http("GET", T0)["log_end_offset"] == 1, "the append")
    assert replicated.http("GET", T0)["high_watermark"] == 0
    replicated.server.advance(30_000)
    assert outcome(wire.answer())[0] is E.REQUEST_TIMED_OUT
    assert replicated.http("POST", f"{T0}/isr", {"replicas": [1, 2, 3]})["high_watermark"] == 1


def test_an_in_sync_set_that_is_refused_changes_nothing(replicated: ControlPlane) -> None:
    """A broker that is down cannot be in sync; the follower that was not named goes on replicating."""
    replicated.kafka.topics["t"].partitions[0].move_leader(1)
    replicated.kafka.brokers[3].stop()
    status, problem = replicated.refused("POST", f"{T0}/isr", {"replicas": [1, 3]})
    assert (status, "INELIGIBLE_REPLICA" in problem["detail"]) == (409, True)
    reported = replicated.http("GET", T0)
    assert (sorted(reported["isr"]), reported["held"]) == ([1, 2], [])
    assert produce(replicated.server.wire(1)) == (E.NONE, 0)
    replicated.kafka.brokers[3].start()


def test_an_unclean_leader_cuts_off_what_it_never_had(replicated: ControlPlane) -> None:
    """Records that only the old leader had are gone, as after an unclean election."""
    leader = leader_of(replicated)
    follower = next(b for b in (1, 2, 3) if b != leader)
    assert produce(replicated.server.wire(leader)) == (E.NONE, 0)
    replicated.http("POST", f"{T0}/isr", {"replicas": [leader]})
    assert produce(replicated.server.wire(leader), acks=1) == (E.NONE, 1)
    reported = replicated.http("POST", f"{T0}/leader", {"broker": follower})
    assert (reported["leader"], reported["log_end_offset"]) == (follower, 1)
    replicated.http("POST", f"{T0}/isr", {"replicas": [1, 2, 3]})
    assert produce(replicated.server.wire(follower)) == (E.NONE, 1)


def test_a_consumer_notices_what_an_unclean_leader_cut_off(replicated: ControlPlane) -> None:
    """KIP-320: it has read a record that the new leader never had, compares epochs, and reports it."""
    partition = replicated.kafka.topics["t"].partitions[0]
    leader = partition.show().leader
    follower, left_out = (b for b in (1, 2, 3) if b != leader)
    producer = Producer({"bootstrap.servers": replicated.bootstrap, "acks": 1, "linger.ms": 0})
    producer.produce("t", b"on all", partition=0)
    assert producer.flush(60) == 0
    partition.set_isr([leader, follower])
    producer.produce("t", b"on two", partition=0)
    assert producer.flush(60) == 0
    settings = {"group.id": "g", "auto.offset.reset": "error", "topic.metadata.refresh.interval.ms": 200}
    consumer = Consumer({"bootstrap.servers": replicated.bootstrap, **settings})
    consumer.assign([TopicPartition("t", 0, 0)])
    read = [consumer.poll(60), consumer.poll(60)]
    assert [record and record.value() for record in read] == [b"on all", b"on two"]
    partition.move_leader(left_out)
    reported = consumer.poll(60)
    consumer.close()
    error = reported and reported.error()
    assert error is not None
    assert "truncation detected at offset 2" in str(error)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "replicas"),
        ({"replicas": [7]}, "replicas"),
        ({"replicas": []}, "replicas"),
        ({"replicas": [1], "held": [1]}, "held"),
    ],
)
def test_the_in_sync_set_makes_sense(plane: ControlPlane, body: Any, field: str) -> None:
    """Of the replicas, with the leader, which is never held."""
    status, problem = plane.refused("POST", f"{T0}/isr", body)
    assert (status, problem["field"]) == (422, field)


# --- producers -------------------------------------------------------------------------------------------------------


@pytest.mark.verb("producers forget")
def test_a_forgotten_producer_recovers(plane: ControlPlane) -> None:
    """KIP-360: the broker answers UNKNOWN_PRODUCER_ID or out of order, a real client goes on by itself."""
    producer = Producer({"bootstrap.servers": plane.bootstrap, "enable.idempotence": True, "linger.ms": 0})
    producer.produce("t", b"1", partition=0)
    assert producer.flush(60) == 0
    partition = plane.kafka.topics["t"].partitions[0]
    (known,) = partition.show().producers
    partition.forget_producer(known.producer_id)
    assert partition.show().producers == ()
    assert plane.refused("DELETE", f"{T0}/producers/{known.producer_id}")[0] == 404
    assert plane.refused("DELETE", f"{T0}/producers/x")[0] == 404
    producer.produce("t", b"2", partition=0)
    assert producer.flush(60) == 0
    assert [r.value for r in partition.records()] == [b"1", b"2"]
    plane.ctl_text("producers", "forget", "t", "0", str(partition.show().producers[0].producer_id))
