"""What a runtime reports to its observer: decisions with their reasons, refusals, and the cause of both."""

from collections.abc import Hashable, Sequence
from typing import Any

import pytest

from broker.coordination.outcome import Outcome, Reply
from broker.coordination.reasons import Reason, Refusal
from protocol.errors import ErrorCode, KafkaError
from tests.coordination.runtime_harness import Batch, Bench, Machine, check_raises


class Watcher:
    """An observer that keeps everything it is given."""

    def __init__(self) -> None:
        self.applied: list[tuple[str | None, list[Any], object]] = []
        self.refused: list[tuple[ErrorCode, object]] = []

    def on_applied(self, machine: Machine, outcome: Outcome[Any], replaced: Sequence[Any], cause: object) -> None:
        """What was done, and why."""
        latest = machine.replayed[len(machine.replayed) - len(outcome.records) :]
        assert [record for record, _, _ in latest] == list(outcome.records)
        kind = None if outcome.reason is None else outcome.reason.kind
        self.applied.append((kind, list(replaced), cause))

    def on_refused(self, machine: Machine, error: KafkaError, cause: object) -> None:  # noqa: ARG002
        """What was not."""
        self.refused.append((error.code, cause))


REASON = Reason("done", "groups A.1", "KIP-1")


async def test_an_observer_learns_why_and_for_whom() -> None:
    """After replay: the reason of the machine, what the records replace, and the cause that the caller passed."""
    bench = Bench()
    bench.runtime._observer = watcher = Watcher()
    await bench.runtime.ask(lambda _m, _now, token: Outcome(("a",), (Reply(token, 1),), reason=REASON), cause="request")
    bench.runtime.submit(lambda _now_ms: Outcome(("b",), reason=REASON))
    assert watcher.applied == [("done", ["before a"], "request"), ("done", ["before b"], None)]
    assert watcher.refused == []


async def test_an_observer_learns_of_refusals() -> None:
    """Of the machine, of its log, and beside an outcome that has an effect."""
    bench = Bench()
    bench.runtime._observer = watcher = Watcher()

    def refuse(_machine: Machine, _now_ms: int, _token: Hashable) -> Outcome[str]:
        raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)

    await check_raises(bench.runtime.ask(refuse, cause=1), ErrorCode.FENCED_INSTANCE_ID)
    bench.log.refuse = ErrorCode.NOT_ENOUGH_REPLICAS
    with pytest.raises(KafkaError):
        await bench.runtime.ask(lambda _m, _now, token: Outcome(("a",), (Reply(token, 1),)), cause=2)
    bench.log.refuse = None
    refusal = Refusal(ErrorCode.CONCURRENT_TRANSACTIONS, "groups A.1", "KIP-1")
    outcome: Outcome[str] = Outcome(("a",), refusal=refusal)
    bench.runtime.submit(lambda _now_ms: outcome)
    assert watcher.refused == [
        (ErrorCode.FENCED_INSTANCE_ID, 1),
        (ErrorCode.NOT_ENOUGH_REPLICAS, 2),
        (ErrorCode.CONCURRENT_TRANSACTIONS, None),
    ]
    assert [replaced for _, replaced, _ in watcher.applied] == [["before a"]]


def test_what_is_loaded_is_not_observed() -> None:
    """Replayed records are not reported to the observer."""
    bench = Bench(Batch([b"a", b"b"]), load=False)
    bench.runtime._observer = watcher = Watcher()
    bench.runtime.load()
    assert [replaced for _, replaced, _ in watcher.applied if replaced] == []
    assert bench.machine.replayed == [("a", 0, False), ("b", 1, False)]
