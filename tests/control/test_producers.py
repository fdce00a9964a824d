"""Producer ids over HTTP, in Python and in the shell: what partitions know of them, timelines, and why of refusals."""

import re
from collections.abc import Callable

import pytest
from confluent_kafka import Producer

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.records import Record, build_batch
from tests.control.conftest import ControlPlaneOf
from tests.control.harness import ControlPlane
from tests.control.test_transactions import RawProducer
from understudy import results

E = ErrorCode


class Idempotent:
    """A producer without a transactional id, as its requests."""

    def __init__(self, plane: ControlPlane, client_id: str = "raw") -> None:
        self.wire = plane.server.wire(client_id=client_id)
        answer = self.wire.call(ApiKey.INIT_PRODUCER_ID, 1, InitProducerIdRequest(None, 60_000))
        self.id, self.epoch = answer.producer_id, answer.producer_epoch

    def send(self, sequence: int, count: int = 1, *, partition: int = 0, acks: int = -1, **batch: int) -> ErrorCode:
        """A batch to a partition of t."""
        fields = {"producer_id": self.id, "producer_epoch": self.epoch, "base_sequence": sequence, **batch}
        records = [Record(at, 1, None, b"v") for at in range(count)]
        data = [TopicProduceData("t", [PartitionProduceData(partition, build_batch(records, **fields))])]
        answer = self.wire.call(ApiKey.PRODUCE, 7, ProduceRequest(None, acks, 1000, data))
        code: ErrorCode = answer.responses[0].partition_responses[0].error_code
        return code


@pytest.fixture
def raw(plane: ControlPlane) -> Idempotent:
    """One that has its id."""
    return Idempotent(plane)


def steps(plane: ControlPlane, producer_id: int) -> list[tuple[str, str, int, int, int, int]]:
    """Its timeline in short: event, partition, epoch before and after, sequences."""
    events = plane.kafka.producers[producer_id].show().timeline
    return [(e.event, e.partition, e.epoch_before, e.epoch_after, e.first_sequence, e.last_sequence) for e in events]


# --- timelines -------------------------------------------------------------------------------------------------------


def test_a_timeline_shows_what_became_of_each_sequence(plane: ControlPlane, raw: Idempotent) -> None:
    """Batches that follow each other are one event; repetitions and refusals are events between them."""
    assert [raw.send(0, 2), raw.send(2, 3), raw.send(5)] == [E.NONE] * 3
    assert raw.send(5) is E.NONE
    assert raw.send(9) is E.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert raw.send(6) is E.NONE
    assert raw.send(0, partition=1) is E.NONE
    raw.epoch = 1
    assert raw.send(0) is E.NONE
    assert steps(plane, raw.id) == [
        ("initialised", "", -1, 0, -1, -1),
        ("accepted", "t-0", -1, 0, 0, 5),
        ("duplicate", "t-0", 0, 0, 5, 5),
        ("refused", "t-0", 0, 0, 9, 9),
        ("accepted", "t-0", 0, 0, 6, 6),
        ("accepted", "t-1", -1, 0, 0, 0),
        ("accepted", "t-0", 0, 1, 0, 0),
    ]
    first, run, again, refused, *_, fresh = plane.kafka.producers[raw.id].show().timeline
    assert (first.api, first.client_id, first.rule) == ("InitProducerId", "raw", "transactions A.1 A5")
    assert (run.batches, run.api, run.version, run.connection) == (3, "Produce", 7, first.connection)
    rows = [event.rule.removeprefix("transactions D.4 ") for event in (run, again, refused, fresh)]
    assert rows == ["S9", "S1", "S8", "S7"]
    assert fresh.citation == "KIP-360 (docs/specification/transactions/d-partition-leader.md#d-4-s7)"
    assert (refused.error, refused.known_sequence) == ("OUT_OF_ORDER_SEQUENCE_NUMBER", 5)


def test_all_three_answer_the_same(plane: ControlPlane, raw: Idempotent) -> None:
    """HTTP, Python and the shell return the same producers, in a list of all and for one."""
    raw.send(0, 4)
    (reported,) = plane.kafka.producers.list()
    place = results.ProducerPlace("t-0", raw.id, 0, 3, reported.partitions[0].last_timestamp_ms)
    assert reported == results.ProducerLife(raw.id, 0, None, "raw", (place,))
    assert plane.http("GET", "/v1/producers")["producers"] == plane.ctl("producers", "list")["producers"]
    assert plane.http("GET", f"/v1/producers/{raw.id}") == plane.ctl("producers", "show", str(raw.id))
    table = plane.ctl_text("producers", "show", str(raw.id))
    assert re.search(r"accepted +t-0 +-1 +0 +0 +3 +- +KIP-360 \(docs/specification/transactions/.*#d-4-s9\)", table)


@pytest.mark.verb("producers list", "producers show")
def test_a_real_client_has_a_timeline_too(plane: ControlPlane) -> None:
    """Its answer is lost, it sends again: the partition knows the batch, and nothing is written twice."""
    fault = plane.kafka.faults.add(api="Produce", apply_then={"disconnect": "reset"})
    producer = Producer({"bootstrap.servers": plane.bootstrap, "enable.idempotence": True, "client.id": "app"})
    producer.produce("t", b"one", partition=0)
    assert producer.flush(60) == 0
    (reported,) = plane.kafka.producers.list()
    lost, known = plane.kafka.producers[reported.producer_id].show().timeline[1:]
    assert (lost.event, lost.fault, known.event, known.fault) == ("accepted", fault.id, "duplicate", None)
    assert (lost.client_id, lost.first_sequence, known.first_sequence) == ("app", 0, 0)
    assert known.connection != lost.connection
    assert "at offset 0" in known.detail
    assert [record.value for record in plane.kafka.topics["t"].partitions[0].records()] == [b"one"]


def test_a_transactional_producer_has_one_with_what_moved_its_id(plane: ControlPlane) -> None:
    """The requests of its transactions, and between them its batches."""
    producer = Producer({"bootstrap.servers": plane.bootstrap, "transactional.id": "x"})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("t", b"v", partition=0)
    producer.commit_transaction(60)
    producer_id = plane.kafka.transactions["x"].show().producer_id
    life = plane.kafka.producers[producer_id].show()
    assert life.transactional_id == "x"
    names = [event.event for event in life.timeline]
    reported = ["initialised", "begun", "accepted", "commit decided"]
    assert [name for name in names if name in reported] == reported
    (decided,) = [event for event in life.timeline if event.event == "commit decided"]
    assert "Ongoing -> PrepareCommit" in decided.detail
    stranger = RawProducer(plane)
    assert stranger.id == producer_id  # its next epoch
    assert "initialised" in [event.event for event in plane.kafka.producers[producer_id].show().timeline][4:]


def test_what_is_forgotten_is_shown(plane: ControlPlane, raw: Idempotent) -> None:
    """By a command, and by the clock; the next batch may have any sequence (KIP-360)."""
    raw.send(0, 4)
    plane.kafka.topics["t"].partitions[0].forget_producer(raw.id)
    assert raw.send(77) is E.NONE
    plane.kafka.clock.advance(days=2)
    assert steps(plane, raw.id)[2:] == [
        ("forgotten", "t-0", -1, -1, -1, -1),
        ("accepted", "t-0", -1, 0, 77, 77),
        ("expired", "t-0", -1, -1, -1, -1),
    ]
    assert plane.kafka.producers[raw.id].show().partitions == ()
    plane.server.reset()
    assert plane.refused("GET", f"/v1/producers/{raw.id}")[0] == 404


def test_an_unknown_producer_id_is_not_found(plane: ControlPlane, raw: Idempotent) -> None:
    """The error lists those in use, or what an id is."""
    for way in ("", "/why"):
        status, problem = plane.refused("GET", f"/v1/producers/{raw.id + 1}{way}")
        others = f"no producer has the producer id {raw.id + 1}; the latest in use are {raw.id}"
        assert (status, problem["detail"]) == (404, others)
        status, problem = plane.refused("GET", f"/v1/producers/x{way}")
        assert (status, "not 'x'; GET /v1/producers lists them" in problem["detail"]) == (422, True)


# --- why -------------------------------------------------------------------------------------------------------------


def gap(_plane: ControlPlane, raw: Idempotent) -> ErrorCode:
    """A sequence too far."""
    raw.send(0, 4)
    return raw.send(9, 2)


def gap_after_a_refusal(plane: ControlPlane, raw: Idempotent) -> ErrorCode:
    """The batch before was refused, this one came all the same."""
    raw.send(0, 4)
    with plane.kafka.faults.add(api="Produce", error="NOT_ENOUGH_REPLICAS"):
        raw.send(4)
    return raw.send(5)


def old_sequence(_plane: ControlPlane, raw: Idempotent) -> ErrorCode:
    """One that was written before the last five batches."""
    for sequence in range(7):
        raw.send(sequence)
    return raw.send(0)


def new_epoch(_plane: ControlPlane, raw: Idempotent) -> ErrorCode:
    """One that does not begin with 0."""
    raw.send(0)
    raw.epoch = 1
    return raw.send(1)


def zombie(plane: ControlPlane, raw: Idempotent) -> ErrorCode:
    """A batch of the epoch before."""
    raw.send(0, 2)
    other = Idempotent(plane, "newer")
    other.id, other.epoch = raw.id, 1
    other.send(0, 3)
    return raw.send(2)


def outside(plane: ControlPlane, raw: Idempotent) -> ErrorCode:
    """A batch outside of the transaction that the same producer has open."""
    transactor = RawProducer(plane)
    transactor.add(0)
    records = [Record(0, 1, None, b"v")]
    batch = build_batch(records, producer_id=transactor.id, producer_epoch=0, transactional=True, base_sequence=0)
    data = [TopicProduceData("t", [PartitionProduceData(0, batch)])]
    raw.wire.call(ApiKey.PRODUCE, 9, ProduceRequest("x", -1, 1000, data))
    raw.id = transactor.id
    return raw.send(1)


def by_fault(plane: ControlPlane, raw: Idempotent) -> ErrorCode:
    """What was asked for."""
    plane.kafka.faults.add(api="Produce", error="INVALID_PRODUCER_EPOCH")
    return raw.send(0)


def by_fault_afterwards(plane: ControlPlane, raw: Idempotent) -> ErrorCode:
    """Written, and then answered so."""
    plane.kafka.faults.add(api="Produce", apply_then={"error": "REQUEST_TIMED_OUT"})
    return raw.send(0)


def too_few_replicas(plane: ControlPlane, raw: Idempotent) -> ErrorCode:
    """One in sync, two wanted."""
    plane.kafka.topics["t"].partitions[0].set_isr([1])
    return raw.send(0)


def replicated_late(plane: ControlPlane, raw: Idempotent) -> ErrorCode:
    """A follower that takes nothing; time runs out."""
    plane.kafka.topics["t"].partitions[0].set_isr([1, 2, 3], held=[2])
    return raw.send(0)


def another_leader(plane: ControlPlane, raw: Idempotent) -> ErrorCode:
    """Asked the one that it was."""
    plane.kafka.topics["t"].partitions[0].move_leader(2)
    return raw.send(0)


REFUSALS: list[tuple[Callable[[ControlPlane, Idempotent], ErrorCode], ErrorCode, str]] = [
    (
        gap,
        E.OUT_OF_ORDER_SEQUENCE_NUMBER,
        (
            r"the sequence: t-0 has the producer's sequences up to 3, written by client `raw` \(connection \d+\) at "
            r"\S+; the batch starts at 9, with sequences 4 to 8 missing\. Produce v7 from client `raw` "
            r"\(connection \d+\) to t-0, sequences 9 to 10 at epoch 0, was refused at \S+, with "
            r"OUT_OF_ORDER_SEQUENCE_NUMBER: KIP-98 \(docs/specification/transactions/.*#d-4-s8\)\.$"
        ),
    ),
    (
        gap_after_a_refusal,
        E.OUT_OF_ORDER_SEQUENCE_NUMBER,
        r"the sequence: .*, with sequence 4 missing \(refused at \S+ with NOT_ENOUGH_REPLICAS, by a fault\)\.",
    ),
    (
        old_sequence,
        E.OUT_OF_ORDER_SEQUENCE_NUMBER,
        r"the sequence: .* up to 6, .*; the batch starts at 0 again, and only an exact resend of one of the last",
    ),
    (
        new_epoch,
        E.OUT_OF_ORDER_SEQUENCE_NUMBER,
        r"the sequence: t-0 has the producer at epoch 0, the batch starts epoch 1, .* sequence 0, not 1\..*d-4-s7\)\.$",
    ),
    (
        zombie,
        E.INVALID_PRODUCER_EPOCH,
        (
            r"fenced: at \S+ client `newer` \(connection \d+\) wrote to t-0 by Produce v7, sequences 0 to 2, while "
            r"this producer was at epoch 0; the epoch became 1; KIP-360 \(.*d-4-s7\)\. Produce .*`raw`.*s4\)\.$"
        ),
    ),
    (outside, E.INVALID_TXN_STATE, r"the wrong state: .* its transaction is open, .* \(docs/.*#d-4-s10\)"),
    (
        by_fault,
        E.INVALID_PRODUCER_EPOCH,
        r"a fault: fault \d+ \(refused with INVALID_PRODUCER_EPOCH\); the error is not",
    ),
    (by_fault_afterwards, E.REQUEST_TIMED_OUT, r"a fault: .*; the batch was written nevertheless\. Produce v7"),
    (too_few_replicas, E.NOT_ENOUGH_REPLICAS, r"the replicas: the ISR is 1 now, .* is 2; the batch was not written\."),
    (replicated_late, E.REQUEST_TIMED_OUT, r"the replicas: the ISR is 1, 2, 3 now, .*; the batch was written never"),
    (another_leader, E.NOT_LEADER_OR_FOLLOWER, r"the leader: the request went to broker 1; broker 2 leads t-0 now\."),
]
REPLICATED = {too_few_replicas, replicated_late, another_leader}


@pytest.mark.parametrize(("act", "code", "pattern"), REFUSALS, ids=[each[0].__name__ for each in REFUSALS])
def test_every_refusal_has_a_why(
    plane_of: ControlPlaneOf, act: Callable[[ControlPlane, Idempotent], ErrorCode], code: ErrorCode, pattern: str
) -> None:
    """Cause, time, requests and rule; the error code is the one in the producer's response."""
    settings = {"default.replication.factor": 3, "min.insync.replicas": 2}
    plane = plane_of(brokers=3, topics=["t:1"], settings=settings) if act in REPLICATED else plane_of(topics=["t:2"])
    if act in REPLICATED:
        plane.kafka.topics["t"].partitions[0].move_leader(1)
    raw = Idempotent(plane)
    assert act(plane, raw) is code
    reported = plane.kafka.producers[raw.id].why()
    assert re.match(pattern, reported.why), reported.why
    assert reported.error == code.name
    assert not re.search(r"\b(transactions|groups|core) [A-I0]", reported.why), "no id without its link"
    assert plane.ctl("producers", "why", str(raw.id))["why"] == reported.why


@pytest.mark.parametrize("lost", ["never there", "forgotten"])
def test_an_older_release_refuses_who_it_does_not_know(plane_of: ControlPlaneOf, lost: str) -> None:
    """Before KIP-360 a producer that a partition has forgotten had to begin with 0."""
    plane = plane_of(topics=["t:2"], as_version="2.3")
    raw = Idempotent(plane)
    if lost == "forgotten":
        raw.send(0, 4)
        plane.kafka.topics["t"].partitions[0].forget_producer(raw.id)
    assert raw.send(4) is E.UNKNOWN_PRODUCER_ID
    reported = plane.kafka.producers[raw.id].why()
    assert (reported.rule, reported.citation[:14]) == ("transactions D.4 S9", "before KIP-360")
    assert reported.why.startswith(
        "unknown: t-0 has no state of this producer, and the batch does not start at sequence 0. "
    )
    forgotten = r"The partition removed the producer's state at \S+, by the control plane\."
    assert re.search(forgotten if lost == "forgotten" else "or it never wrote there", reported.why)


def test_nothing_was_refused_yet(plane: ControlPlane, raw: Idempotent) -> None:
    """If nothing was refused yet, the result reports that instead of an error."""
    raw.send(0)
    result = plane.kafka.producers[raw.id].why()
    assert (result.error, result.why) == (None, f"no request of the producer id {raw.id} has been refused")


def test_the_refusal_of_a_fenced_transactional_producer_is_found_by_its_id(plane: ControlPlane) -> None:
    """The explanation is the transactional id's, which knows more."""
    raw = RawProducer(plane)
    RawProducer(plane)
    assert raw.add(0) is E.PRODUCER_FENCED
    reported = plane.kafka.producers[raw.id].why()
    assert reported == plane.kafka.transactions["x"].why()
    assert reported.why.startswith("fenced: at ")


def test_the_walk_has_every_code_that_a_partition_decides_for_a_producer() -> None:
    """Those of transactions D.4, and those around them."""
    assert {code for _, code, _ in REFUSALS} | {E.UNKNOWN_PRODUCER_ID} == {
        E.OUT_OF_ORDER_SEQUENCE_NUMBER,
        E.INVALID_PRODUCER_EPOCH,
        E.INVALID_TXN_STATE,
        E.UNKNOWN_PRODUCER_ID,
        E.NOT_ENOUGH_REPLICAS,
        E.NOT_LEADER_OR_FOLLOWER,
        E.REQUEST_TIMED_OUT,
    }
