"""Plants: transactions that are not reported as their producers were answered."""

from typing import Any

from protocol.log_records.transaction import TransactionState as State
from tests.pipeline.fault_files import T0_MS
from tests.pipeline.journal_faults import answer
from tests.pipeline.journal_lines import Wire, Wiring

CHECK, TOPIC = "transaction-report", "wire-clean"


_PRODUCERS = {
    "transaction-reported-prepared": 983,
    "transaction-reported-without-a-partition": 984,
    "transaction-not-listed": 985,
    "commit-reported-as-abort": 986,
    "transaction-over-with-partitions": 987,
}


def _who(name: str) -> tuple[int, int]:
    return _PRODUCERS[name], 0


def _begun(wiring: Wiring, name: str) -> Wire:
    """A transaction of one partition, which goes on."""
    wiring.now_us += 60_000_000  # those of other plants have timed out
    wiring.where.transaction(name, *_who(name), State.ONGOING, [(TOPIC, 0)], at_ms=T0_MS)
    wire = wiring.connect(name)
    wire.init(name, _who(name))
    wire.add(name, _who(name), TOPIC, 0)
    return wire


def _described(wire: Wire, name: str, state: str, *partitions: int) -> int:
    topics = [{"topic": TOPIC, "partitions": list(partitions)}] if partitions else []
    description = {
        "error_code": "NONE", "transactional_id": name, "transaction_state": state, "producer_id": _who(name)[0],
        "transaction_timeout_ms": 60_000, "transaction_start_time_ms": T0_MS,
        "producer_epoch": 0, "topics": topics,
    }  # fmt: skip
    return wire.call(
        "DescribeTransactions", {"transactional_ids": [name]}, {"transaction_states": [description]}, version=0
    )


def _listed(wire: Wire, *states: dict[str, Any]) -> int:
    request = {"state_filters": [], "producer_id_filters": [], "duration_filter": -1, "transactional_id_pattern": None}
    got = {"error_code": "NONE", "unknown_state_filters": [], "transaction_states": list(states)}
    return wire.call("ListTransactions", request, got, version=0)


@answer(CHECK)
def transaction_reported_prepared(wiring: Wiring, name: str) -> int:
    """A transaction that goes on is about to be aborted."""
    return _described(_begun(wiring, name), name, "PrepareAbort", 0)


@answer(CHECK)
def transaction_reported_without_a_partition(wiring: Wiring, name: str) -> int:
    """A transaction that goes on has another partition than the one that was added."""
    return _described(_begun(wiring, name), name, "Ongoing", 1)


@answer(CHECK)
def transaction_not_listed(wiring: Wiring, name: str) -> int:
    """A transaction that goes on is in no list."""
    return _listed(_begun(wiring, name))


@answer(CHECK)
def commit_reported_as_abort(wiring: Wiring, name: str) -> int:
    """A transaction that was committed was aborted."""
    wire = _begun(wiring, name)
    wire.end(name, _who(name))
    state = {"transactional_id": name, "producer_id": _who(name)[0], "transaction_state": "CompleteAbort"}
    return _listed(wire, state)


@answer(CHECK)
def another_producer_id(wiring: Wiring, name: str) -> int:
    """A transactional id gets another producer id at once."""
    wire = wiring.connect(name)
    wire.init(name, (981, 0))
    return wire.init(name, (982, 0), had=(981, 0))


@answer("answer-value")
def transaction_over_with_partitions(wiring: Wiring, name: str) -> int:
    """A transaction that is over still has partitions."""
    wiring.where.transaction(name, *_who(name), State.ONGOING, [(TOPIC, 0)])
    return _described(wiring.connect(name), name, "CompleteCommit", 0)
