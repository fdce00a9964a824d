"""Faults made from the protocol (`tests/exam/faults.py`) are found: a sample here, all of them in the nightly run."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from tests.exam import planting
from tests.exam.faults import CODES, Fault
from tests.exam.reference import consumer, consumer_protocol, share_consumer
from tests.exam.reference.driver import InProcess
from tests.exam.reference.planted import Planted
from tests.exam.reference.producer import ReferenceProducer
from understudy.client import Cluster, start
from understudy.exam import codes, exercise, wire, witnesses
from understudy.exam.level import Level
from understudy.exam.runner import OPTIONS, Runner
from understudy.exam.scenario import SCENARIOS
from understudy.exam.verdicts import Verdict
from understudy.results import JournalEntry

TIMEOUT_MS = 3_000
ON_THE_WIRE = (
    ("send Produce.acks 1", "produce/plain", "Produce"),
    ("send RecordBatch.producer_epoch -1", "idempotence/plain", "Produce"),
    ("send InitProducerId.transaction_timeout_ms other", "transactions/empty", "InitProducerId"),
    ("send Fetch.isolation_level other", "consumers/from-the-middle", "Fetch"),
    ("send OffsetFetch.require_stable other", "transactions/exactly-once-copy", "OffsetFetch"),
    ("send TxnOffsetCommit.generation_id -1", "transactions/exactly-once-copy", "TxnOffsetCommit"),
    ('send OffsetCommit.member_id ""', "groups/commit-and-resume", "OffsetCommit"),
    ("send OffsetCommit.generation_id_or_member_epoch -1", "consumer-protocol/commit-and-resume", "OffsetCommit"),
)  # fmt: skip
MANY = (
    "send Produce.acks 1", "send RecordBatch.codec 0", "send RecordBatch.records.key null",
    "send Fetch.isolation_level 0", "send OffsetFetch.require_stable other", "send TxnOffsetCommit.generation_id -1",
    'send TxnOffsetCommit.member_id ""', "send JoinGroup.session_timeout_ms other",
    "send OffsetCommit.generation_id_or_member_epoch -1", "send ListOffsets.isolation_level 0",
    "take Produce OUT_OF_ORDER_SEQUENCE_NUMBER as NONE", "take Produce INVALID_PRODUCER_EPOCH as NONE",
    "take Produce TRANSACTION_ABORTABLE as NONE", "take Produce CONCURRENT_TRANSACTIONS as UNKNOWN_SERVER_ERROR",
    "take EndTxn INVALID_TXN_STATE as NONE", "take EndTxn TRANSACTION_ABORTABLE as NONE",
    "take OffsetCommit ILLEGAL_GENERATION as NONE", "take OffsetCommit REBALANCE_IN_PROGRESS as NONE",
    "take TxnOffsetCommit ILLEGAL_GENERATION as NONE", "take JoinGroup UNKNOWN_MEMBER_ID as REQUEST_TIMED_OUT",
    "take Fetch TOPIC_AUTHORIZATION_FAILED as NONE", "first Fetch.responses.partitions.aborted_transactions",
    "first OffsetCommit.topics.partitions",
)  # fmt: skip
"""Faults that the exam did not find, all at once, when it had scenarios only."""


@pytest.fixture(scope="module")
def exam_cluster() -> Iterator[Cluster]:
    """The exam's cluster, which each play resets."""
    with start(**OPTIONS) as cluster:
        yield cluster


@pytest.mark.parametrize(("mutation", "name", "api"), ON_THE_WIRE)
def test_the_wire_shows_the_request_that_broke_the_rule(
    exam_cluster: Cluster, mutation: str, name: str, api: str
) -> None:
    """Its sentence comes first, and the request is the first line of the evidence."""
    runner = Runner(lambda: InProcess(mutation), timeout_ms=TIMEOUT_MS)
    verdict, problem, evidence = runner.play(exam_cluster, SCENARIOS[name])
    assert verdict in {Verdict.FAIL, Verdict.NON_STRICT}
    assert problem.startswith("request ")
    assert api in evidence[0]


@pytest.mark.parametrize(("version", "code"), [(12, "TRANSACTION_ABORTABLE"), (10, "INVALID_TXN_STATE")])
def test_an_older_client_gets_the_code_of_its_version(
    exam_cluster: Cluster, monkeypatch: pytest.MonkeyPatch, version: int, code: str
) -> None:
    """Kafka answers TRANSACTION_ABORTABLE since Produce 11; the scenario returned it in each version."""
    monkeypatch.setattr(ReferenceProducer, "_version", lambda _self: version)
    runner = Runner(InProcess, timeout_ms=TIMEOUT_MS)
    assert runner.play(exam_cluster, SCENARIOS["transactions/record-transaction-abortable"])[0] is Verdict.PASS
    topics = [
        each for entry in exam_cluster.journal.find(api="Produce") for each in (entry.response or {})["responses"]
    ]
    refused = {each["error_code"] for topic in topics if topic["name"] == "u" for each in topic["partition_responses"]}
    assert refused == {code}


def test_a_code_that_no_broker_returns_in_a_version_is_no_verdict(
    exam_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client sends EndTxn 4; the code is that of the next version here, and has none before it."""
    monkeypatch.setitem(codes.SINCE, ("EndTxn", "TRANSACTION_ABORTABLE"), 5)
    runner = Runner(lambda: InProcess("adds-partitions-once"), timeout_ms=TIMEOUT_MS)
    name = "transactions/end-refused-transaction-abortable"
    verdict, problem, _ = runner.play(exam_cluster, SCENARIOS[name])
    assert (verdict, "no request met the fault" in problem) == (Verdict.NOT_EXERCISED, True)


def test_a_client_with_many_faults_does_not_pass(exam_cluster: Cluster) -> None:
    """A client with 23 faults once passed the whole exam."""
    names = ("produce/plain", "consumers/plain", "groups/commit-and-resume", "transactions/commit")
    runner = Runner(lambda: InProcess(*MANY), timeout_ms=TIMEOUT_MS)
    verdicts = {name: runner.play(exam_cluster, SCENARIOS[name])[0] for name in names}
    assert {name for name, verdict in verdicts.items() if verdict is Verdict.FAIL} >= {
        "produce/plain", "groups/commit-and-resume", "transactions/commit",
    }  # fmt: skip


def rows() -> list[tuple[str, str]]:
    """The faults that were planted, and the scenario that finds each, or why none does."""
    places = [each for row in planting.recorded().values() for each in row.items()]
    return [(fault, name) for name, faults in places for fault in faults]


def test_the_page_is_what_was_recorded() -> None:
    """Each fault has a scenario that there is, no effect, or is missed; at least four in five of 700 are found."""
    assert planting.PAGE.read_text(encoding="utf-8") == planting.page(planting.recorded())
    noticed = [name for _, name in rows() if name in SCENARIOS]
    others = {name for _, name in rows()} - SCENARIOS.keys()
    assert {name.partition(":")[0] for name in others} <= {"no effect", planting.MISSED}
    assert len(rows()) > 700
    assert len(noticed) > 0.8 * len(rows())
    missed = sum(name.startswith(planting.MISSED) for _, name in rows())
    guide = " ".join((planting.PAGE.parents[1] / "exam.md").read_text(encoding="utf-8").split())
    sums = f"Of {len(rows())} faults that were planted in a client, the exam finds {len(noticed)}, "
    assert f"{sums}{len(rows()) - len(noticed) - missed} have no effect" in guide
    assert f"[{missed} are missed]" in guide


def test_a_run_is_recorded_by_kind_and_scenario() -> None:
    """The page counts a fault as found, without effect, or missed, and names those that were never met."""
    results = [
        planting.Result(Fault("behaviour", "writes-nothing"), "produce/plain", tried=1),
        planting.Result(Fault("error: final", "take Produce INVALID_RECORD as NONE"), tried=2),
        planting.Result(Fault("error: final", "take Fetch CORRUPT_MESSAGE as NONE")),
    ]
    table = planting.tabulated(results)
    assert table["Behaviour"] == {"produce/plain": ["writes-nothing"]}
    assert table["Error: final"][planting.NOT_MET] == ["take Fetch CORRUPT_MESSAGE as NONE"]
    assert len(table["Error: final"]) == 2
    assert "| Behaviour | 1 | 1 | 0 | 0 |" in planting.page(table)


@pytest.mark.nightly
@pytest.mark.timeout(3_000)
def test_each_fault_of_the_page_is_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the scenario that the page names; if not at once, a second time with the exam's own patience.

    What is found by a count of repeated requests takes as many of them, which a busy machine does not send in 3 s.
    """
    for module in (consumer, consumer_protocol, share_consumer):
        monkeypatch.setattr(module, "DEADLINE_S", planting.DEADLINE_S)
    missed: list[str] = []

    def play(mutation: str, name: str) -> Callable[[Cluster], bool]:
        def on(cluster: Cluster) -> bool:
            fault = Fault("", mutation)
            result, usable = planting.look_for(cluster, fault, [name])
            if usable and not result.scenario:
                result, usable = planting.look_for(cluster, fault, [name], timeout_ms=exercise.TIMEOUT_MS)
            if not result.scenario:
                missed.append(mutation)
            return usable

        return on

    planting.on_clusters([play(*row) for row in rows() if row[1] in SCENARIOS], planting.JOBS)
    assert missed == []


def test_a_storm_is_not_taken_for_a_client_without_membership() -> None:
    """Of more requests than the journal returns, those that granted a member id may be missing."""
    options = {"group": "g", "protocol": "classic", "instance_id": None, "isolation": "read_uncommitted"}
    client = wire.Client("c", "consumer", {**options, "auto_commit": True, "session_timeout_ms": 1})
    request = {"group_id": "g", "member_id": "m", "session_timeout_ms": 1, "group_instance_id": None}
    refused: dict[str, Any] = {"outcome": "answered", "error": "NOT_COORDINATOR", "response": {}, "request": request}
    entries = [JournalEntry(n, 0, "JoinGroup", 7, client_id="c", ts_us=n, **refused) for n in range(wire.LIMIT)]
    (few, *_) = wire.problems([client], entries[:20])
    assert "'m' was not granted" in few.text
    assert {each.level for each in wire.problems([client], entries)} == {Level.MAY}


def produced(sequence: int, count: int | None, error: str = "NONE") -> JournalEntry:
    """A Produce request of producer 1 in epoch 0, and its response."""
    records = {"producer_id": 1, "producer_epoch": 0, "base_sequence": sequence, "count": count}
    request = {"topic_data": [{"name": "t", "partition_data": [{"index": 0, "records": records}]}]}
    response = {"responses": [{"name": "t", "partition_responses": [{"index": 0, "error_code": error}]}]}
    answered: dict[str, Any] = {"outcome": "answered", "request": request, "response": response}
    return JournalEntry(sequence, 0, "Produce", 9, client_id="c", ts_us=sequence, **answered)


def test_a_batch_without_an_end_has_a_problem_too() -> None:
    """The journal does not know how many records it has."""
    sent = list(witnesses.batches([produced(0, None), produced(5, None)]))
    assert [batch for batch, _ in witnesses.broken_sequences(sent)] == sent[1:]


@pytest.mark.parametrize(("error", "is_judged"), [("INVALID_PRODUCER_EPOCH", False), ("NOT_LEADER_OR_FOLLOWER", True)])
def test_sequences_of_an_epoch_that_was_refused_are_not_judged(error: str, is_judged: bool) -> None:
    """Java gives the sequence of the refused batch to the next one, which is refused, too; any other batch goes on."""
    sent = list(witnesses.batches([produced(0, 2, error), produced(0, 3, error)]))
    assert [batch for batch, _ in witnesses.broken_sequences(sent)] == (sent[1:] if is_judged else [])


def test_the_sequence_of_a_batch_that_was_refused_for_good_is_free() -> None:
    """KafkaJS gives it to the next batch, as the broker expects; not if an earlier attempt may have been written."""
    refused = produced(2, 1, "INVALID_REQUIRED_ACKS")
    for sent, broken in (
        ([produced(0, 2), refused, produced(2, 2), produced(4, 1)], []),
        ([produced(0, 2), refused, produced(3, 1)], []),
        ([produced(0, 2), produced(2, 1), produced(2, 2)], [2]),
        ([produced(0, 2), produced(2, 1), refused, produced(2, 2)], [3]),
        ([produced(0, 2), refused, refused, produced(2, 2)], [3]),
        ([produced(0, 2), refused, produced(2, 2), produced(2, 3)], [3]),
    ):
        batches = list(witnesses.batches(sent))
        assert [batch for batch, _ in witnesses.broken_sequences(batches)] == [batches[at] for at in broken]


class Message:
    """A message with a list."""

    __slots__ = ("number", "rows", "text")

    def __init__(self, number: int, text: str | bytes, rows: list[Any]) -> None:
        self.number, self.text, self.rows = number, text, rows


def test_a_field_is_sent_as_another() -> None:
    """At any depth, and of this API only; the client keeps what it meant."""
    planted = Planted(["send Fetch.rows.number other", 'send Fetch.text ""', "first Fetch.rows"])
    meant = Message(1, "a", [Message(2, "b", []), Message(3, "c", [])])
    sent = planted.request(ApiKey.FETCH, meant)
    assert ([each.number for each in sent.rows], sent.text) == ([3, 4], "")
    assert ([each.number for each in meant.rows], meant.text) == ([2, 3], "a")
    assert planted.request(ApiKey.PRODUCE, meant) is meant
    assert len(planted.response(ApiKey.FETCH, meant).rows) == 1
    assert Planted(['send Fetch.text "x"']).request(ApiKey.FETCH, Message(1, b"a", [])).text == b"x"


def test_the_table_names_codes_of_kafka() -> None:
    """A name that is misspelt would never be met."""
    assert {
        code for classes in CODES.values() for codes in classes.values() for code in codes
    } <= ErrorCode.__members__.keys()


def test_generations_are_compared_in_the_order_of_their_grants() -> None:
    """A coordinator that failed may grant a lower one; the one before it is then the old one."""

    def join(number: int, generation: int) -> JournalEntry:
        answer = {"error_code": "NONE", "member_id": "m", "generation_id": generation}
        return JournalEntry(number, 0, "JoinGroup", 5, request={"group_id": "g", "member_id": ""}, response=answer)

    def beat(number: int, generation: int) -> JournalEntry:
        request = {"group_id": "g", "member_id": "m", "generation_id": generation}
        return JournalEntry(number, 0, "Heartbeat", 3, request=request, response={"error_code": "NONE"})

    right = [join(1, 3), beat(2, 3), join(3, 2), beat(4, 2)]
    assert wire.broken_rules(right) == []
    (problem,) = wire.broken_rules([*right, beat(5, 3)])
    assert str(problem).endswith("generation 3 is used after generation 2")
