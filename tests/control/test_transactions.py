"""Transactional ids at all three ways: looked at, held at a step, aborted, put at an epoch."""

from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

import understudy
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from tests.control.harness import ControlPlane
from tests.serving import until
from understudy import results

E = ErrorCode


class RawProducer:
    """A transactional producer as its requests, of versions before KIP-890."""

    def __init__(self, plane: ControlPlane, name: str = "x") -> None:
        self.wire, self.name = plane.server.wire(client_id="raw"), name
        self.wire.call(ApiKey.FIND_COORDINATOR, 4, FindCoordinatorRequest(key_type=1, coordinator_keys=[name]))
        self.id = self.epoch = -1
        self.init()

    def init(self) -> ErrorCode:
        """InitProducerId as a new producer."""
        answer = self.wire.call(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest(self.name, 60_000, -1, -1))
        if answer.error_code is E.NONE:
            self.id, self.epoch = answer.producer_id, answer.producer_epoch
        code: ErrorCode = answer.error_code
        return code

    def add(self, *partitions: int) -> ErrorCode:
        """Partitions of t join."""
        topics = [AddPartitionsToTxnTopic("t", partitions)]
        transaction = AddPartitionsToTxnTransaction(self.name, self.id, self.epoch, topics=topics)
        request = AddPartitionsToTxnRequest(transactions=[transaction])
        (result,) = self.wire.call(ApiKey.ADD_PARTITIONS_TO_TXN, 3, request).results_by_transaction
        code: ErrorCode = result.topic_results[0].results_by_partition[0].partition_error_code
        return code

    def end(self, *, committed: bool = True) -> ErrorCode:
        """EndTxn."""
        request = EndTxnRequest(self.name, self.id, self.epoch, committed)
        code: ErrorCode = self.wire.call(ApiKey.END_TXN, 3, request).error_code
        return code


@pytest.fixture
def raw(plane: ControlPlane) -> RawProducer:
    """A producer with the id x."""
    return RawProducer(plane)


def state(plane: ControlPlane, name: str = "x") -> str:
    """Of its transaction."""
    return plane.kafka.transactions[name].show().state


# --- looking ---------------------------------------------------------------------------------------------------------


def test_an_id_is_shown_in_every_state(plane: ControlPlane, raw: RawProducer) -> None:
    """Producer, partitions and deadline while its transaction is open."""
    reported = plane.kafka.transactions["x"].show()
    assert (reported.state, reported.producer_id, reported.producer_epoch, reported.deadline_ms) == (
        "Empty",
        raw.id,
        0,
        None,
    )
    raw.add(0, 1)
    reported = plane.kafka.transactions["x"].show()
    assert (reported.state, reported.partitions, reported.timeout_ms, reported.coordinator) == (
        "Ongoing",
        ("t-0", "t-1"),
        60_000,
        1,
    )
    assert reported.deadline_ms is not None
    assert abs(reported.deadline_ms - plane.server.now_ms() - 60_000) < 30_000
    raw.end()
    assert until(lambda: state(plane) == "CompleteCommit", "the markers")
    (row,) = plane.ctl("transactions", "list")["transactions"]
    assert (row["transactional_id"], row["state"]) == ("x", "CompleteCommit")
    assert "CompleteCommit" in plane.ctl_text("transactions", "show", "x")
    assert [each.transactional_id for each in plane.kafka.transactions.list()] == ["x"]


def test_pending_offsets_are_shown(plane: ControlPlane) -> None:
    """By group and partition, until the transaction ends."""
    plane.kafka.topics["t"].write("v")
    consumer = Consumer({"bootstrap.servers": plane.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["t"])
    assert consumer.poll(60) is not None
    producer = Producer({"bootstrap.servers": plane.bootstrap, "transactional.id": "x"})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.send_offsets_to_transaction([TopicPartition("t", 0, 1)], consumer.consumer_group_metadata(), 10)
    assert plane.kafka.transactions["x"].show().pending_offsets == {"g": {"t-0": 1}}
    assert plane.kafka.groups["g"].show().offsets == ()
    producer.commit_transaction(60)
    assert plane.kafka.transactions["x"].show().pending_offsets == {}
    (offset,) = plane.kafka.groups["g"].show().offsets
    assert (offset.topic, offset.partition, offset.offset, offset.lag) == ("t", 0, 1, 0)
    consumer.close()


def test_the_client_of_a_transaction_is_shown(plane: ControlPlane) -> None:
    """Of the last request about it: id, connection as in the journal, address, library."""
    producer = Producer({"bootstrap.servers": plane.bootstrap, "transactional.id": "x", "client.id": "payments"})
    producer.init_transactions(60)
    answer = plane.http("GET", "/v1/transactions/x")
    request = plane.http("GET", "/v1/journal?api=InitProducerId")["entries"][-1]
    names = ("client_id", "connection", "client", "software")
    assert [answer[name] for name in names] == [request[name] for name in names]
    assert (answer["client_id"], answer["software"].split()[0]) == ("payments", "confluent-kafka-python")
    assert "client_id            payments" in plane.ctl_text("transactions", "show", "x").splitlines()
    plane.http("DELETE", "/v1/journal")
    answer = plane.kafka.transactions["x"].show()
    assert (answer.client_id, answer.connection, answer.client) == ("payments", request["connection"], None)


def test_an_id_that_was_never_initialised_is_not_found(plane: ControlPlane) -> None:
    """404, before and after the coordinator's topic exists."""
    assert plane.refused("GET", "/v1/transactions/x")[0] == 404
    assert plane.http("GET", "/v1/transactions") == {"transactions": []}
    RawProducer(plane, "y")
    for method, path in (("GET", ""), ("POST", "/abort"), ("PUT", "/producer")):
        assert plane.refused(method, f"/v1/transactions/x{path}", {"epoch": 1} if method == "PUT" else None)[0] == 404


# --- held at a step --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "after", "written"),
    [("prepare", None, 0), ("markers", 1, 1), ("complete", None, 2)],
    ids=["prepare", "markers", "complete"],
)
def test_a_commit_stops_at_a_step(
    plane: ControlPlane, raw: RawProducer, at: Any, after: int | None, written: int
) -> None:
    """The decision is answered; then the broker answers CONCURRENT_TRANSACTIONS until the hold is released."""
    transaction = plane.kafka.transactions["x"]
    transaction.hold(at, after_markers=after)
    raw.add(0, 1)
    assert raw.end() is E.NONE
    reported = transaction.show()
    assert (reported.state, reported.held_at) == ("PrepareCommit", at)
    ends = [plane.kafka.topics["t"].partitions[index].show().log_end_offset for index in (0, 1)]
    assert sum(ends) == written
    assert raw.end() is E.CONCURRENT_TRANSACTIONS
    assert raw.add(0) is E.CONCURRENT_TRANSACTIONS
    assert raw.init() is E.CONCURRENT_TRANSACTIONS
    plane.server.advance(3_600_000)
    assert state(plane) == "PrepareCommit"
    transaction.release()
    assert until(lambda: state(plane) == "CompleteCommit", "the rest of the commit")
    assert raw.end() is E.NONE


@pytest.mark.verb("transactions hold", "transactions release")
def test_a_hold_is_seen_by_a_real_client(plane: ControlPlane) -> None:
    """Its next transaction waits for the markers of the last one, without an error for the application."""
    producer = Producer({"bootstrap.servers": plane.bootstrap, "transactional.id": "x"})
    producer.init_transactions(60)
    plane.ctl("transactions", "hold", "x", "markers", "--after-markers", "0")
    producer.begin_transaction()
    producer.produce("t", b"1", partition=0)
    producer.commit_transaction(60)
    partition = plane.kafka.topics["t"].partitions[0]
    assert partition.records(isolation="read_committed") == []
    producer.begin_transaction()
    producer.produce("t", b"2", partition=0)
    assert until(lambda: plane.kafka.journal.find(error="CONCURRENT_TRANSACTIONS"), "the client asking in vain")
    assert plane.ctl("transactions", "release", "x")["held_at"] is None
    producer.commit_transaction(60)
    assert until(lambda: len(partition.records(isolation="read_committed")) == 2, "both transactions")


def test_holds_make_sense(plane: ControlPlane) -> None:
    """A step, and a number of markers only where there are markers; releasing what is not held is a conflict."""
    path = "/v1/transactions/x"
    assert plane.refused("POST", f"{path}/hold", {"at": "commit"})[1]["field"] == "at"
    assert plane.refused("POST", f"{path}/hold", {"at": "prepare", "after_markers": 1})[1]["field"] == "after_markers"
    assert plane.refused("POST", f"{path}/release")[0] == 409
    plane.http("POST", f"{path}/hold", {"at": "prepare"})
    plane.server.reset()
    assert plane.refused("POST", f"{path}/release")[0] == 409


# --- aborted, put at an epoch ----------------------------------------------------------------------------------------


def test_an_open_transaction_is_aborted_as_by_its_timeout(plane: ControlPlane, raw: RawProducer) -> None:
    """The producer is fenced; a real client is refused at its commit."""
    status, problem = plane.refused("POST", "/v1/transactions/x/abort")
    assert (status, "no open transaction" in problem["detail"]) == (409, True)
    raw.add(0)
    plane.kafka.transactions["x"].abort()
    assert until(lambda: state(plane) == "CompleteAbort", "the markers")
    assert raw.end() is E.PRODUCER_FENCED


@pytest.mark.verb("transactions abort")
def test_a_real_producer_whose_transaction_was_aborted_is_fenced(plane: ControlPlane) -> None:
    """`ctl transactions abort` fences a real producer in its transaction."""
    producer = Producer({"bootstrap.servers": plane.bootstrap, "transactional.id": "x"})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("t", b"v", partition=0)
    producer.flush(60)
    assert plane.ctl("transactions", "abort", "x")["state"] in ("PrepareAbort", "CompleteAbort")
    with pytest.raises(KafkaException) as raised:
        producer.commit_transaction(60)
    assert raised.value.args[0].fatal()


def test_a_timeout_of_fifteen_minutes_comes_now(plane: ControlPlane, raw: RawProducer) -> None:
    """Pushing the clock aborts what is open, with the client connected."""
    raw.add(0)
    plane.kafka.clock.advance(minutes=15)
    assert until(lambda: state(plane) == "CompleteAbort", "the abort")
    assert raw.end() is E.PRODUCER_FENCED
    assert raw.init() is E.NONE


def test_epochs_can_be_exhausted(plane: ControlPlane, raw: RawProducer) -> None:
    """At 32766 the next InitProducerId gives another producer id, at epoch 0 (transactions A.3 E1)."""
    before = raw.id
    plane.kafka.transactions["x"].set_epoch(32_766)
    assert plane.kafka.transactions["x"].show().producer_epoch == 32_766
    assert raw.init() is E.NONE
    assert (raw.id != before, raw.epoch) == (True, 0)
    assert plane.ctl("transactions", "set-epoch", "x", "7")["producer_epoch"] == 7
    assert plane.refused("PUT", "/v1/transactions/x/producer", {"epoch": 32_768})[1]["field"] == "epoch"
    with pytest.raises(understudy.ControlError):
        plane.kafka.transactions["x"].set_epoch(-1)


@pytest.mark.verb("transactions set-epoch")
def test_a_real_producer_goes_on_past_exhaustion(plane: ControlPlane) -> None:
    """A new instance gets a new producer id and commits."""
    conf = {"bootstrap.servers": plane.bootstrap, "transactional.id": "x"}
    Producer(conf).init_transactions(60)
    plane.kafka.transactions["x"].set_epoch(32_766)
    producer = Producer(conf)
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("t", b"v", partition=0)
    producer.commit_transaction(60)
    reported: results.Transaction = plane.kafka.transactions["x"].show()
    assert reported.producer_epoch < 10
