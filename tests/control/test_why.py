"""Timelines of transactional ids, and refusals told in words: one for every fencing or state error there is."""

import re
from collections.abc import Callable

import pytest
from confluent_kafka import KafkaException, Producer

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.records import Record, build_batch
from tests.control.conftest import DoorsOf
from tests.control.doors import Doors
from tests.control.test_transactions import RawProducer
from tests.serving import until

E = ErrorCode


@pytest.fixture
def raw(doors: Doors) -> RawProducer:
    """A producer with the id x."""
    return RawProducer(doors)


def why(doors: Doors, name: str = "x") -> str:
    """The words."""
    return doors.kafka.transactions[name].why().why


def produce(raw: RawProducer, *, epoch: int | None = None, sequence: int = 0, version: int = 9) -> ErrorCode:
    """A transactional record to t-0."""
    batch = build_batch([Record(0, 1, None, b"v")], producer_id=raw.id, transactional=True, base_sequence=sequence,
                        producer_epoch=raw.epoch if epoch is None else epoch)  # fmt: skip
    data = [TopicProduceData("t", [PartitionProduceData(0, batch)])]
    answer = raw.wire.call(ApiKey.PRODUCE, version, ProduceRequest(raw.name, -1, 1000, data))
    code: ErrorCode = answer.responses[0].partition_responses[0].error_code
    return code


# --- timelines -------------------------------------------------------------------------------------------------------


def test_a_timeline_tells_each_step_with_its_rule(doors: Doors, raw: RawProducer) -> None:
    """State and epoch before and after, who asked, and the rule that decided."""
    raw.add(0)
    raw.add(0)
    raw.end()
    until(lambda: doors.kafka.transactions["x"].show().state == "CompleteCommit", "the markers")
    events = doors.kafka.transactions["x"].show().timeline
    assert [(e.event, e.state_before, e.state_after) for e in events] == [
        ("initialised", "", "Empty"),
        ("begun", "Empty", "Ongoing"),
        ("asked again, nothing changed", "Ongoing", "Ongoing"),
        ("commit decided", "Ongoing", "PrepareCommit"),
        ("committed", "PrepareCommit", "CompleteCommit"),
    ]
    first, begun, *_, completed = events
    assert (first.epoch_before, first.epoch_after, first.producer_id) == (-1, 0, raw.id)
    assert (first.api, first.version, first.client_id, first.rule) == (
        "InitProducerId", 4, "raw", "transactions E4, KIP-98")  # fmt: skip
    assert begun.connection == first.connection
    assert (completed.api, completed.rule) == (None, "transactions B.6, KIP-98")
    assert "commit decided" in doors.ctl_text("transactions", "show", "x")


@pytest.mark.verb("transactions show")
def test_a_real_client_has_a_timeline_too(doors: Doors) -> None:
    """And one that is forgotten by a reset."""
    producer = Producer({"bootstrap.servers": doors.bootstrap, "transactional.id": "x", "client.id": "app"})
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce("t", b"v", partition=0)
    producer.commit_transaction(10)
    events = doors.kafka.transactions["x"].show().timeline
    assert {"initialised", "begun", "commit decided"} <= {event.event for event in events}
    assert {event.client_id for event in events if event.api} == {"app"}
    doors.server.reset()
    RawProducer(doors)
    assert [event.event for event in doors.kafka.transactions["x"].show().timeline] == ["initialised"]


def test_what_is_replayed_from_the_log_is_no_event(doors: Doors, raw: RawProducer) -> None:
    """A coordinator that loads anew adds nothing."""
    raw.add(0)
    before = doors.kafka.transactions["x"].show().timeline
    doors.kafka.coordinators.move(type="transaction", key="x", broker=1)
    assert doors.kafka.transactions["x"].show().timeline == before


# --- why -------------------------------------------------------------------------------------------------------------


def test_who_fenced_whom(doors: Doors, raw: RawProducer) -> None:
    """The sentence names both clients, their requests, the epochs and the rule."""
    raw.add(0)
    other = RawProducer(doors)
    other.wire.close()
    until(lambda: RawProducer(doors).epoch, "the abort")
    assert raw.end() is E.PRODUCER_FENCED
    told = doors.kafka.transactions["x"].why()
    assert (told.error, told.rule) == ("PRODUCER_FENCED", "transactions T5")
    assert re.fullmatch(
        r"fenced: at \d\d:\d\d:\d\d\.\d{3} client `raw` \(connection \d+\) called InitProducerId v4 without an epoch "
        r"while this producer was at \(\d+, 0\); the epoch became 1; transactions I5 and A\.5, KIP-98\. "
        r"Refused was EndTxn v3 \(commit\) of client `raw` \(connection \d+\) as \(\d+, 0\), "
        r"at \d\d:\d\d:\d\d\.\d{3}, with PRODUCER_FENCED \(transactions T5\)\.",
        told.why,
    )
    assert doors.ctl("transactions", "why", "x")["why"] == told.why


@pytest.mark.verb("transactions why")
def test_a_real_zombie_can_be_explained(doors: Doors) -> None:
    """Two instances of a client with the same id."""
    conf = {"bootstrap.servers": doors.bootstrap, "transactional.id": "x"}
    old = Producer({**conf, "client.id": "old"})
    old.init_transactions(10)
    old.begin_transaction()
    old.produce("t", b"v", partition=0)
    old.flush(10)
    new = Producer({**conf, "client.id": "new"})
    new.init_transactions(20)
    with pytest.raises(KafkaException):
        old.commit_transaction(10)
    told = why(doors)
    assert told.startswith("fenced: at ")
    assert "client `new`" in told
    assert "client `old`" in told


def test_nothing_was_refused_yet(doors: Doors, raw: RawProducer) -> None:
    """Said so; an id that nobody has used is not there."""
    assert raw.add(0) is E.NONE
    told = doors.kafka.transactions["x"].why()
    assert (told.error, "nothing was refused" in told.why) == (None, True)
    assert doors.refused("GET", "/v1/transactions/y/why")[0] == 404


def test_a_fault_is_not_blamed_on_the_transaction(doors: Doors, raw: RawProducer) -> None:
    """The words name the fault."""
    raw.add(0)
    fault = doors.kafka.faults.add(api="EndTxn", error="PRODUCER_FENCED")
    assert raw.end() is E.PRODUCER_FENCED
    assert why(doors).startswith(f"a fault: fault {fault.id}, {{'error': 'PRODUCER_FENCED'}}; nothing of")


def timed_out(doors: Doors, raw: RawProducer) -> ErrorCode:
    """By the clock."""
    raw.add(0)
    doors.kafka.clock.advance(minutes=2)
    return raw.end()


def aborted_by_steering(doors: Doors, raw: RawProducer) -> ErrorCode:
    """By the control plane."""
    raw.add(0)
    doors.kafka.transactions["x"].abort()
    return raw.end()


def from_the_future(_doors: Doors, raw: RawProducer) -> ErrorCode:
    """An epoch that is too high."""
    raw.epoch += 5
    return raw.add(0)


def zombie_batch(doors: Doors, raw: RawProducer) -> ErrorCode:
    """A record of the epoch before."""
    raw.add(0)
    produce(raw)
    doors.kafka.transactions["x"].abort()
    until(lambda: doors.kafka.transactions["x"].show().state == "CompleteAbort", "the markers")
    return produce(raw, sequence=1)


def newer_epoch_by_end(doors: Doors, raw: RawProducer) -> ErrorCode:
    """EndTxn v5 raises the epoch; the producer goes on with the old one."""
    raw.add(0)
    request = EndTxnRequest("x", raw.id, raw.epoch, committed=True)
    assert raw.wire.call(ApiKey.END_TXN, 5, request).error_code is E.NONE
    until(lambda: doors.kafka.transactions["x"].show().state == "CompleteCommit", "the markers")
    return raw.add(0)


def unknown_id(_doors: Doors, raw: RawProducer) -> ErrorCode:
    """Of an id that nobody has initialised; its coordinator is the same, there is one partition."""
    raw.name = "y"
    return raw.add(0)


def expired_id(doors: Doors, raw: RawProducer) -> ErrorCode:
    """After a week."""
    doors.kafka.clock.advance(days=8)
    return raw.add(0)


def another_id(_doors: Doors, raw: RawProducer) -> ErrorCode:
    """A producer id that is not the transactional id's."""
    raw.id += 1
    return raw.add(0)


def exhausted_id(doors: Doors, raw: RawProducer) -> ErrorCode:
    """The producer id from before the epochs were exhausted."""
    doors.kafka.transactions["x"].set_epoch(32_766)
    other = RawProducer(doors)
    assert other.id != raw.id
    raw.epoch = 32_766
    return raw.add(0)


def held(doors: Doors, raw: RawProducer) -> ErrorCode:
    """While markers are held."""
    doors.kafka.transactions["x"].hold("markers")
    raw.add(0)
    raw.end()
    return raw.add(0)


def concurrent_init(doors: Doors, raw: RawProducer) -> ErrorCode:
    """A new producer while a transaction is open."""
    raw.add(0)
    return doors_init(doors)


def doors_init(doors: Doors, timeout_ms: int = 60_000) -> ErrorCode:
    """InitProducerId of somebody new."""
    request = InitProducerIdRequest("x", timeout_ms, -1, -1)
    code: ErrorCode = doors.server.wire(client_id="late").call(ApiKey.INIT_PRODUCER_ID, 4, request).error_code
    return code


def nothing_to_commit(_doors: Doors, raw: RawProducer) -> ErrorCode:
    """EndTxn without a transaction."""
    return raw.end()


def unverified(_doors: Doors, raw: RawProducer) -> ErrorCode:
    """A record of a partition that was never added (KIP-890)."""
    return produce(raw, version=11)


def out_of_sequence(_doors: Doors, raw: RawProducer) -> ErrorCode:
    """A sequence that leaves a gap."""
    raw.add(0)
    produce(raw)
    return produce(raw, sequence=7)


def too_long(doors: Doors, _raw: RawProducer) -> ErrorCode:
    """A timeout above the most that is allowed."""
    return doors_init(doors, 10_000_000)


def loading(doors: Doors, raw: RawProducer) -> ErrorCode:
    """A coordinator that takes its time."""
    doors.kafka.coordinators.move(type="transaction", key="x", broker=1, loading_ms=60_000)
    return raw.add(0)


REFUSALS: list[tuple[Callable[[Doors, RawProducer], ErrorCode], ErrorCode, str, str]] = [
    (timed_out, E.PRODUCER_FENCED, "x", r"fenced: at .* open for longer than its timeout, was aborted .* became 1"),
    (aborted_by_steering, E.PRODUCER_FENCED, "x", r"fenced: at .* it was aborted by the control plane"),
    (from_the_future, E.PRODUCER_FENCED, "x", r"an epoch that nobody was given: the producer is at \(\d+, 0\)"),
    (
        zombie_batch,
        E.INVALID_PRODUCER_EPOCH,
        "x",
        r"fenced: at .* aborted by the control plane.*Refused was Produce v9",
    ),
    (newer_epoch_by_end, E.PRODUCER_FENCED, "x", r"fenced: at .* ended its transaction by EndTxn v5 \(commit\)"),
    (unknown_id, E.INVALID_PRODUCER_ID_MAPPING, "y", r"unknown: nobody has called InitProducerId for 'y'"),
    (expired_id, E.INVALID_PRODUCER_ID_MAPPING, "x", r"forgotten: at .* transactional\.id\.expiration\.ms"),
    (another_id, E.INVALID_PRODUCER_ID_MAPPING, "x", r"another producer id: 'x' belongs to \d+"),
    (
        exhausted_id,
        E.INVALID_PRODUCER_ID_MAPPING,
        "x",
        r"another producer id: at .* InitProducerId .* it became \(\d+, 0\)",
    ),
    (
        held,
        E.CONCURRENT_TRANSACTIONS,
        "x",
        r"busy: at .* EndTxn v3 \(commit\).*the control plane holds it at 'markers'",
    ),
    (concurrent_init, E.CONCURRENT_TRANSACTIONS, "x", r"busy: at .*client `late`.*had to be aborted first"),
    (nothing_to_commit, E.INVALID_TXN_STATE, "x", r"the wrong state: the id is in Empty since .* InitProducerId v4"),
    (unverified, E.TRANSACTION_ABORTABLE, "x", r"not in the transaction: t-0 is not in the transaction; .* in Empty"),
    (out_of_sequence, E.OUT_OF_ORDER_SEQUENCE_NUMBER, "x", r"the sequence: .*transactions D\.4"),
    (too_long, E.INVALID_TRANSACTION_TIMEOUT, "x", r"the timeout: .* transaction\.max\.timeout\.ms, which is 900000"),
    (loading, E.COORDINATOR_LOAD_IN_PROGRESS, "x", r"the coordinator: broker 1 is still loading"),
]


@pytest.mark.parametrize(("act", "code", "name", "words"), REFUSALS, ids=[each[0].__name__ for each in REFUSALS])
def test_every_refusal_has_a_why(
    doors_of: DoorsOf, act: Callable[[Doors, RawProducer], ErrorCode], code: ErrorCode, name: str, words: str
) -> None:
    """Cause, time, requests and rule; the code is the one that the client heard."""
    doors = doors_of(topics=["t:2", "u:1"], settings={"transaction.state.log.num.partitions": 1})
    raw = RawProducer(doors)
    assert act(doors, raw) is code
    told = doors.kafka.transactions[name].why()
    assert told.error == code.name
    assert re.match(words, told.why), told.why
    assert f"with {code.name}" in told.why


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


def test_the_wrong_broker_is_told_who_is_the_right_one(doors_of: DoorsOf) -> None:
    """NOT_COORDINATOR, with both."""
    doors = doors_of(brokers=3, topics=["t:1"])
    raw = RawProducer(doors)
    doors.kafka.coordinators.move(type="transaction", key="x", broker=2)
    assert raw.init() is E.NOT_COORDINATOR
    assert why(doors).startswith("the coordinator: broker 1 was asked, broker 2 coordinates this id now.")
