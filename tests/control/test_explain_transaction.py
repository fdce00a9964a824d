"""Timelines of transactional ids, and explanations of refusals: one for every fencing or state error there is."""

import re
from collections.abc import Callable

import pytest
from confluent_kafka import KafkaException, Producer

from control_api.times import local_time
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from protocol.records.records import Record, build_batch
from tests.control.conftest import ControlPlaneOf
from tests.control.harness import ControlPlane
from tests.control.test_transactions import RawProducer
from tests.serving import until

E = ErrorCode


@pytest.fixture
def raw(plane: ControlPlane) -> RawProducer:
    """A producer with the id x."""
    return RawProducer(plane)


def why(plane: ControlPlane, name: str = "x") -> str:
    """The explanation of the last refusal."""
    return plane.kafka.transactions[name].why().why


def change_transaction_version(raw: RawProducer, level: int, *, upgrade_type: int) -> None:
    """Take the feature to a level; the type 1 is an upgrade, 3 a downgrade that may lose what is new."""
    update = FeatureUpdateKey("transaction.version", level, upgrade_type=upgrade_type)
    answer = raw.wire.call(ApiKey.UPDATE_FEATURES, 2, UpdateFeaturesRequest(feature_updates=[update]))
    assert answer.error_code is E.NONE, answer.error_message


def produce(raw: RawProducer, *, epoch: int | None = None, sequence: int = 0, version: int = 9) -> ErrorCode:
    """A transactional record to t-0."""
    batch = build_batch([Record(0, 1, None, b"v")], producer_id=raw.id, transactional=True, base_sequence=sequence,
                        producer_epoch=raw.epoch if epoch is None else epoch)  # fmt: skip
    data = [TopicProduceData("t", [PartitionProduceData(0, batch)])]
    answer = raw.wire.call(ApiKey.PRODUCE, version, ProduceRequest(raw.name, -1, 1000, data))
    code: ErrorCode = answer.responses[0].partition_responses[0].error_code
    return code


# --- timelines -------------------------------------------------------------------------------------------------------


def test_a_timeline_has_each_step_with_its_rule(plane: ControlPlane, raw: RawProducer) -> None:
    """State and epoch before and after, the request, and the rule that decided."""
    raw.add(0)
    raw.add(0)
    raw.end()
    until(lambda: plane.kafka.transactions["x"].show().state == "CompleteCommit", "the markers")
    events = plane.kafka.transactions["x"].show().timeline
    assert [(e.event, e.state_before, e.state_after) for e in events] == [
        ("initialised", "", "Empty"),
        ("begun", "Empty", "Ongoing"),
        ("request changed nothing", "Ongoing", "Ongoing"),
        ("commit decided", "Ongoing", "PrepareCommit"),
        ("committed", "PrepareCommit", "CompleteCommit"),
    ]
    first, begun, *_, completed = events
    assert (first.epoch_before, first.epoch_after, first.producer_id) == (-1, 0, raw.id)
    assert (first.api, first.version, first.client_id, first.rule) == (
        "InitProducerId", 4, "raw", "transactions A.3 E4")  # fmt: skip
    assert begun.connection == first.connection
    assert (completed.api, completed.rule) == (None, "transactions B.6")
    assert completed.citation == "KIP-98 (docs/specification/transactions/b-coordinator.md#b-6)"
    assert "commit decided" in plane.ctl_text("transactions", "show", "x")


@pytest.mark.verb("transactions show")
def test_a_real_client_has_a_timeline_too(plane: ControlPlane) -> None:
    """And one that is forgotten by a reset."""
    producer = Producer({"bootstrap.servers": plane.bootstrap, "transactional.id": "x", "client.id": "app"})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("t", b"v", partition=0)
    producer.commit_transaction(60)
    events = plane.kafka.transactions["x"].show().timeline
    assert {"initialised", "begun", "commit decided"} <= {event.event for event in events}
    assert {event.client_id for event in events if event.api} == {"app"}
    plane.server.reset()
    RawProducer(plane)
    assert [event.event for event in plane.kafka.transactions["x"].show().timeline] == ["initialised"]


def test_what_is_replayed_from_the_log_is_no_event(plane: ControlPlane, raw: RawProducer) -> None:
    """A coordinator that loads again adds nothing."""
    raw.add(0)
    before = plane.kafka.transactions["x"].show().timeline
    plane.kafka.coordinators.move(type="transaction", key="x", broker=1)
    assert plane.kafka.transactions["x"].show().timeline == before


# --- why -------------------------------------------------------------------------------------------------------------


def test_who_fenced_whom(plane: ControlPlane, raw: RawProducer) -> None:
    """The sentence names both clients, their requests, the epochs and the rule."""
    raw.add(0)
    other = RawProducer(plane)
    other.wire.close()
    until(lambda: RawProducer(plane).epoch, "the abort")
    assert raw.end() is E.PRODUCER_FENCED
    reported = plane.kafka.transactions["x"].why()
    assert (reported.error, reported.rule) == ("PRODUCER_FENCED", "transactions C.3.1 T5")
    assert re.fullmatch(
        r"fenced: at \S+ client `raw` \(connection \d+\) called InitProducerId v4 without an epoch "
        r"while this producer was at \(\d+, 0\); the epoch became 1; "
        r"KIP-98 \(docs/specification/transactions/a-init-producer-id\.md#a-2-i5\)\. "
        r"EndTxn v3 \(commit\) from client `raw` \(connection \d+\) as \(\d+, 0\) was refused "
        r"at \S+, with PRODUCER_FENCED: "
        r"KIP-98 \(docs/specification/transactions/c-requests\.md#c-3-1-t5\)\.",
        reported.why,
    )
    assert reported.at_ms is not None
    assert f"was refused at {local_time(reported.at_ms)}, with" in reported.why
    assert plane.ctl("transactions", "why", "x")["why"] == reported.why


@pytest.mark.verb("transactions why")
def test_a_real_zombie_can_be_explained(plane: ControlPlane) -> None:
    """Two instances of a client with the same id."""
    conf = {"bootstrap.servers": plane.bootstrap, "transactional.id": "x"}
    old = Producer({**conf, "client.id": "old"})
    old.init_transactions(60)
    old.begin_transaction()
    old.produce("t", b"v", partition=0)
    old.flush(60)
    new = Producer({**conf, "client.id": "new"})
    new.init_transactions(60)
    with pytest.raises(KafkaException):
        old.commit_transaction(60)
    reported = why(plane)
    assert reported.startswith("fenced: at ")
    assert "client `new`" in reported
    assert "client `old`" in reported


def test_the_timeline_explains_a_transaction_that_cannot_be_completed(plane: ControlPlane, raw: RawProducer) -> None:
    """transaction.version was lowered while its markers were held; it completes when its coordinator loads it again."""
    transaction = plane.kafka.transactions["x"]
    raw.add(0)
    transaction.hold("prepare")
    assert raw.wire.call(ApiKey.END_TXN, 5, EndTxnRequest("x", raw.id, raw.epoch, True)).error_code is E.NONE
    change_transaction_version(raw, 0, upgrade_type=3)
    transaction.release()
    until(lambda: transaction.show().timeline[-1].event == "cannot be completed", "the markers")
    assert raw.init() is E.CONCURRENT_TRANSACTIONS
    explained = transaction.why()
    assert "transaction.version 0 has no KIP-890 transactions" in explained.why, explained.why

    change_transaction_version(raw, 2, upgrade_type=1)
    assert raw.init() is E.CONCURRENT_TRANSACTIONS
    plane.kafka.brokers[1].stop()
    plane.kafka.brokers[1].start()
    again = RawProducer(plane)
    until(lambda: again.init() is E.NONE, "the coordinator")
    assert "committed" in [each.event for each in transaction.show().timeline]


def test_an_id_that_stays_in_transition_is_explained(plane: ControlPlane, raw: RawProducer) -> None:
    """transaction.version was lowered while its transaction was open: no record of it can be written."""
    raw.add(0)
    assert raw.wire.call(ApiKey.END_TXN, 5, EndTxnRequest("x", raw.id, raw.epoch, False)).error_code is E.NONE
    until(lambda: plane.kafka.transactions["x"].show().state == "CompleteAbort", "the markers")
    change_transaction_version(raw, 0, upgrade_type=3)
    assert raw.init() is E.UNSUPPORTED_VERSION
    assert raw.init() is E.CONCURRENT_TRANSACTIONS
    reported = why(plane)
    assert reported.startswith("stuck: at ")
    assert "raise transaction.version again, then move or restart the coordinator" in reported

    change_transaction_version(raw, 2, upgrade_type=1)
    plane.kafka.brokers[1].stop()
    plane.kafka.brokers[1].start()
    again = RawProducer(plane)
    until(lambda: again.init() is E.NONE, "the coordinator")


def test_nothing_was_refused_yet(plane: ControlPlane, raw: RawProducer) -> None:
    """The answer reports it; an id that no client has used gets 404."""
    assert raw.add(0) is E.NONE
    result = plane.kafka.transactions["x"].why()
    assert (result.error, "has been refused" in result.why) == (None, True)
    assert plane.refused("GET", "/v1/transactions/y/why")[0] == 404


def test_a_fault_is_not_blamed_on_the_transaction(plane: ControlPlane, raw: RawProducer) -> None:
    """If an injected fault caused the error, the explanation names the fault."""
    raw.add(0)
    fault = plane.kafka.faults.add(api="EndTxn", error="PRODUCER_FENCED")
    assert raw.end() is E.PRODUCER_FENCED
    assert why(plane).startswith(f"a fault: fault {fault.id} (refused with PRODUCER_FENCED); the error did not come")


def timed_out(plane: ControlPlane, raw: RawProducer) -> ErrorCode:
    """By the clock."""
    raw.add(0)
    plane.kafka.clock.advance(minutes=2)
    return raw.end()


def aborted_by_steering(plane: ControlPlane, raw: RawProducer) -> ErrorCode:
    """By the control plane."""
    raw.add(0)
    plane.kafka.transactions["x"].abort()
    return raw.end()


def from_the_future(_plane: ControlPlane, raw: RawProducer) -> ErrorCode:
    """An epoch that is too high."""
    raw.epoch += 5
    return raw.add(0)


def zombie_batch(plane: ControlPlane, raw: RawProducer) -> ErrorCode:
    """A record of the epoch before."""
    raw.add(0)
    produce(raw)
    plane.kafka.transactions["x"].abort()
    until(lambda: plane.kafka.transactions["x"].show().state == "CompleteAbort", "the markers")
    return produce(raw, sequence=1)


def newer_epoch_by_end(plane: ControlPlane, raw: RawProducer) -> ErrorCode:
    """EndTxn v5 raises the epoch; the producer goes on with the old one."""
    raw.add(0)
    request = EndTxnRequest("x", raw.id, raw.epoch, committed=True)
    assert raw.wire.call(ApiKey.END_TXN, 5, request).error_code is E.NONE
    until(lambda: plane.kafka.transactions["x"].show().state == "CompleteCommit", "the markers")
    return raw.add(0)


def unknown_id(_plane: ControlPlane, raw: RawProducer) -> ErrorCode:
    """Of an id that was never initialised; its coordinator is the same, there is one partition."""
    raw.name = "y"
    return raw.add(0)


def expired_id(plane: ControlPlane, raw: RawProducer) -> ErrorCode:
    """After a week."""
    plane.kafka.clock.advance(days=8)
    return raw.add(0)


def another_id(_plane: ControlPlane, raw: RawProducer) -> ErrorCode:
    """A producer id that is not the transactional id's."""
    raw.id += 1
    return raw.add(0)


def exhausted_id(plane: ControlPlane, raw: RawProducer) -> ErrorCode:
    """The producer id from before the epochs were exhausted."""
    plane.kafka.transactions["x"].set_epoch(32_766)
    other = RawProducer(plane)
    assert other.id != raw.id
    raw.epoch = 32_766
    return raw.add(0)


def held(plane: ControlPlane, raw: RawProducer) -> ErrorCode:
    """While markers are held."""
    plane.kafka.transactions["x"].hold("markers")
    raw.add(0)
    raw.end()
    return raw.add(0)


def concurrent_init(plane: ControlPlane, raw: RawProducer) -> ErrorCode:
    """A new producer while a transaction is open."""
    raw.add(0)
    return init_producer_id(plane)


def init_producer_id(plane: ControlPlane, timeout_ms: int = 60_000) -> ErrorCode:
    """InitProducerId of another client."""
    request = InitProducerIdRequest("x", timeout_ms, -1, -1)
    code: ErrorCode = plane.server.wire(client_id="late").call(ApiKey.INIT_PRODUCER_ID, 4, request).error_code
    return code


def nothing_to_commit(_plane: ControlPlane, raw: RawProducer) -> ErrorCode:
    """EndTxn without a transaction."""
    return raw.end()


def unverified(_plane: ControlPlane, raw: RawProducer) -> ErrorCode:
    """A record of a partition that was never added (KIP-890)."""
    return produce(raw, version=11)


def out_of_sequence(_plane: ControlPlane, raw: RawProducer) -> ErrorCode:
    """A sequence that leaves a gap."""
    raw.add(0)
    produce(raw)
    return produce(raw, sequence=7)


def too_long(plane: ControlPlane, _raw: RawProducer) -> ErrorCode:
    """A timeout above the most that is allowed."""
    return init_producer_id(plane, 10_000_000)


def loading(plane: ControlPlane, raw: RawProducer) -> ErrorCode:
    """A coordinator that takes its time."""
    plane.kafka.coordinators.move(type="transaction", key="x", broker=1, loading_ms=60_000)
    return raw.add(0)


REFUSALS: list[tuple[Callable[[ControlPlane, RawProducer], ErrorCode], ErrorCode, str, str]] = [
    (timed_out, E.PRODUCER_FENCED, "x", r"fenced: at .* open for longer than its timeout, was aborted .* became 1"),
    (aborted_by_steering, E.PRODUCER_FENCED, "x", r"fenced: at .* it was aborted by the control plane"),
    (from_the_future, E.PRODUCER_FENCED, "x", r"an epoch that was never assigned: the producer is at \(\d+, 0\)"),
    (
        zombie_batch,
        E.INVALID_PRODUCER_EPOCH,
        "x",
        r"fenced: at .* aborted by the control plane.* Produce v9 from client `raw`",
    ),
    (newer_epoch_by_end, E.PRODUCER_FENCED, "x", r"fenced: at .* ended its transaction by EndTxn v5 \(commit\)"),
    (unknown_id, E.INVALID_PRODUCER_ID_MAPPING, "y", r"unknown: no client has called InitProducerId for 'y'"),
    (expired_id, E.INVALID_PRODUCER_ID_MAPPING, "x", r"expired: at .* transactional\.id\.expiration\.ms"),
    (another_id, E.INVALID_PRODUCER_ID_MAPPING, "x", r"wrong producer id: 'x' has producer id \d+"),
    (
        exhausted_id,
        E.INVALID_PRODUCER_ID_MAPPING,
        "x",
        r"wrong producer id: at .* InitProducerId .* it became \(\d+, 0\)",
    ),
    (
        held,
        E.CONCURRENT_TRANSACTIONS,
        "x",
        r"busy: at .* EndTxn v3 \(commit\).*the control plane holds it at 'markers'",
    ),
    (concurrent_init, E.CONCURRENT_TRANSACTIONS, "x", r"busy: at .*client `late`.*had to be aborted first"),
    (
        nothing_to_commit,
        E.INVALID_TXN_STATE,
        "x",
        r"the wrong state: the transactional id is in Empty since .* InitProducerId v4",
    ),
    (unverified, E.TRANSACTION_ABORTABLE, "x", r"not in the transaction: t-0 is not in the transaction; .* in Empty"),
    (out_of_sequence, E.OUT_OF_ORDER_SEQUENCE_NUMBER, "x", r"the sequence: .*ProducerAppendInfo \(docs/.*#d-4\)"),
    (too_long, E.INVALID_TRANSACTION_TIMEOUT, "x", r"the timeout: .* transaction\.max\.timeout\.ms, which is 900000"),
    (loading, E.COORDINATOR_LOAD_IN_PROGRESS, "x", r"the coordinator: broker 1 is still loading"),
]


@pytest.mark.parametrize(("act", "code", "name", "pattern"), REFUSALS, ids=[each[0].__name__ for each in REFUSALS])
def test_every_refusal_has_a_why(
    plane_of: ControlPlaneOf,
    act: Callable[[ControlPlane, RawProducer], ErrorCode],
    code: ErrorCode,
    name: str,
    pattern: str,
) -> None:
    """Cause, time, requests and rule; the error code is the one in the client's response."""
    plane = plane_of(topics=["t:2", "u:1"], settings={"transaction.state.log.num.partitions": 1})
    raw = RawProducer(plane)
    assert act(plane, raw) is code
    reported = plane.kafka.transactions[name].why()
    assert reported.error == code.name
    assert re.match(pattern, reported.why), reported.why
    assert f"with {code.name}" in reported.why
    assert reported.rule
    assert not re.search(r"\b(transactions|groups|core) [A-I0]", reported.why), "no id without its link"


def test_a_gap_in_the_sequences_names_the_batch_that_was_refused(plane_of: ControlPlaneOf) -> None:
    """As for a producer without a transactional id: which batch, with which error."""
    plane = plane_of(topics=["t:2"], settings={"transaction.state.log.num.partitions": 1})
    raw = RawProducer(plane)
    raw.add(0)
    assert produce(raw) is E.NONE
    plane.kafka.faults.add(api="Produce", error="NOT_LEADER_OR_FOLLOWER", times=1)
    assert produce(raw, sequence=1) is E.NOT_LEADER_OR_FOLLOWER
    assert produce(raw, sequence=2) is E.OUT_OF_ORDER_SEQUENCE_NUMBER
    reported = plane.kafka.transactions["x"].why()
    missing = "the batch starts at 2, with sequence 1 missing (refused at "
    assert missing in reported.why, reported.why
    assert "NOT_LEADER_OR_FOLLOWER, by a fault)" in reported.why
    assert reported.rule == "transactions D.4"
    assert missing in plane.kafka.report().text


def test_the_walk_has_every_fencing_and_state_error() -> None:
    """Those of transactions 0.3 that a coordinator or a leader decides for a producer."""
    assert {code for _, code, _, _ in REFUSALS} == {
        E.INVALID_PRODUCER_EPOCH,
        E.PRODUCER_FENCED,
        E.INVALID_PRODUCER_ID_MAPPING,
        E.INVALID_TXN_STATE,
        E.CONCURRENT_TRANSACTIONS,
        E.TRANSACTION_ABORTABLE,
        E.OUT_OF_ORDER_SEQUENCE_NUMBER,
        E.INVALID_TRANSACTION_TIMEOUT,
        E.COORDINATOR_LOAD_IN_PROGRESS,
    }


def test_the_wrong_broker_names_the_right_one(plane_of: ControlPlaneOf) -> None:
    """NOT_COORDINATOR is explained with the broker that was asked and the coordinator."""
    plane = plane_of(brokers=3, topics=["t:1"])
    raw = RawProducer(plane)
    plane.kafka.coordinators.move(type="transaction", key="x", broker=2)
    assert raw.init() is E.NOT_COORDINATOR
    assert why(plane).startswith("the coordinator: the request went to broker 1; broker 2 is the coordinator now.")
