"""Each record that the machine writes, and each refusal, names its rule and where the rule was read from."""

import re
from collections.abc import Callable

import pytest

from broker.coordination.outcome import Reply, TransactionOutcome
from broker.coordination.reasons import STEERING, Refusal
from broker.coordination.transaction.transitions import NO_PRODUCER, ProducerIdAndEpoch
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.transaction import TransactionState
from tests.coordination.transaction.harness import FOO, Bench

S = TransactionState


def reasons(bench: Bench) -> list[tuple[str, str]]:
    """Kind and rule of each record so far."""
    return [(reason.kind, reason.rule) for reason in bench.reasons]


@pytest.mark.parametrize(
    ("client_transaction_version", "decided"),
    [(0, "transactions C.3.1 T7"), (2, "transactions C.3.2 U6")],
    ids=["older", "newer"],
)
@pytest.mark.parametrize("committed", [True, False])
def test_each_step_of_a_transaction(client_transaction_version: int, decided: str, *, committed: bool) -> None:
    """From the first InitProducerId to the end of the markers."""
    bench = Bench()
    bench.init()
    bench.add((1000, 0), FOO)
    bench.add((1000, 0), ("foo", 1))
    bench.end((1000, 0), committed, client_transaction_version=client_transaction_version)
    bench.write_markers()
    verb = "commit" if committed else "abort"
    assert reasons(bench) == [
        ("initialised", "transactions A.3 E4"),
        ("begun", "transactions C.1.1 P14"),
        ("partitions added", "transactions C.1.1 P14"),
        (f"{verb} decided", decided),
        ("committed" if committed else "aborted", "transactions B.6"),
    ]


@pytest.mark.parametrize(
    ("epoch", "last", "expected", "row"),
    [
        (32_766, -1, NO_PRODUCER, "E1"),
        (32_766, -1, (1000, 32_766), "E2"),
        (4, -1, NO_PRODUCER, "E4"),
        (4, -1, (1000, 4), "E6"),
        (4, 3, (1000, 3), "E7"),
    ],
)
def test_each_row_by_which_a_producer_gets_its_epoch(
    epoch: int, last: int, expected: tuple[int, int], row: str
) -> None:
    """Each row of the table of transactions A.3 gives the producer its id and epoch."""
    bench = Bench()
    bench.plant(S.EMPTY, epoch, last=last)
    bench.init(expected=expected)
    assert reasons(bench) == [("initialised", f"transactions A.3 {row}")]


def test_a_new_id_that_names_a_producer() -> None:
    """Row transactions A.3 E5: the id and epoch that the request names are not checked."""
    bench = Bench()
    bench.init(expected=(7, 3))
    assert reasons(bench) == [("initialised", "transactions A.3 E5")]


def test_steps_that_no_request_asked_for() -> None:
    """A timeout, a new producer, an id that expires, the control plane."""
    bench = Bench()
    bench.init()
    bench.add((1000, 0), FOO)
    bench.advance(80_000)
    bench.write_markers()
    bench.init()
    bench.add((1000, 2), FOO)
    assert bench.code(bench.init) == ErrorCode.CONCURRENT_TRANSACTIONS
    bench.write_markers()
    bench.ask(lambda to: bench.machine.set_epoch("tx", 9, bench.now_ms, to))
    bench.add((1000, 9), FOO)
    bench.ask(lambda to: bench.machine.abort("tx", bench.now_ms, to))
    bench.write_markers()
    bench.advance(8 * 24 * 3_600_000)
    kinds = [each for each in reasons(bench) if each[0] not in ("initialised", "begun", "aborted")]
    assert kinds == [
        ("timed out", "transactions B.7"),
        ("aborted for a new producer", "transactions A.2 I5"),
        ("producer epoch set by the control plane", STEERING),
        ("aborted by the control plane", STEERING),
        ("expired", "transactions B.8"),
    ]


def refused(bench: Bench, operation: Callable[[str], TransactionOutcome]) -> Refusal:
    """What an operation is refused with: raised, or beside its outcome."""
    try:
        outcome = operation("me")
    except Refusal as refusal:
        return refusal
    assert outcome.refusal is not None
    bench.do(outcome)
    return outcome.refusal


def add(bench: Bench, producer: tuple[int, int], name: str = "tx") -> Refusal:
    """AddPartitionsToTxn."""
    who = ProducerIdAndEpoch(*producer)
    return refused(bench, lambda to: bench.machine.add_partitions(name, who, frozenset({FOO}), bench.now_ms, to))


def test_each_refusal_names_its_row() -> None:
    """Of AddPartitionsToTxn, verification, InitProducerId and the log."""
    bench = Bench()
    assert add(bench, (1000, 0)).rule == "transactions C.1.1 P7"
    bench.init()
    assert add(bench, (1001, 0)).rule == "transactions C.1.1 P9"
    assert add(bench, (1000, 1)).rule == "transactions C.1.1 P10"
    who = ProducerIdAndEpoch(1000, 0)
    missing = refused(bench, lambda to: bench.machine.verify_partitions("tx", who, [FOO], to))
    assert (missing.rule, missing.source, missing.code) == (
        "transactions C.1.3 V8", "KIP-890", ErrorCode.TRANSACTION_ABORTABLE)  # fmt: skip
    assert missing.sentence == "foo-0 is not in the transaction"
    bench.add((1000, 0), FOO)
    again = refused(bench, lambda to: bench.machine.init_producer_id("tx", 60_000, NO_PRODUCER, bench.now_ms, to))
    assert again.rule == "transactions A.2 I5"
    assert add(bench, (1000, 0)).rule == "transactions C.1.1 P8"


def test_what_the_log_refuses_names_the_log() -> None:
    """As transactions B.4 has it: the reply has the code that clients know, the refusal names the log's error."""
    bench = Bench()
    bench.refuse_append = ErrorCode.NOT_ENOUGH_REPLICAS
    outcome = bench.machine.init_producer_id("tx", 60_000, NO_PRODUCER, bench.now_ms, "me")
    assert outcome.on_append_error is not None
    instead = outcome.on_append_error(KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS), bench.now_ms)
    assert instead.refusal is not None
    assert (instead.refusal.code, instead.refusal.rule) == (
        ErrorCode.COORDINATOR_NOT_AVAILABLE, "transactions B.4")  # fmt: skip
    assert re.search("NOT_ENOUGH_REPLICAS", instead.refusal.sentence)
    assert any(isinstance(effect, Reply) and effect.message is instead.refusal for effect in instead.effects)


@pytest.mark.parametrize(("state", "committed", "row"), [
    (S.COMPLETE_COMMIT, False, "T8"), (S.COMPLETE_ABORT, True, "T9"), (S.EMPTY, True, "T12"),
    (S.PREPARE_COMMIT, True, "T10"), (S.PREPARE_COMMIT, False, "T10"), (S.PREPARE_ABORT, False, "T11"),
])  # fmt: skip
def test_each_row_that_refuses_an_older_end(state: S, row: str, *, committed: bool) -> None:
    """As transactions C.3.1 has it: the row is the state's own."""
    bench = Bench()
    bench.plant(state, 1)
    bench.machine.completions.clear()
    with pytest.raises(Refusal) as caught:
        bench.end((1000, 1), committed, client_transaction_version=0)
    assert caught.value.rule == f"transactions C.3.1 {row}"
