"""Nothing leaves a coordinator before all replicas in sync have its records (Kafka: CoordinatorRuntime)."""

import asyncio
from collections.abc import Hashable

import pytest

from broker.coordination.outcome import CancelTimer, Outcome, Reply, RunAtOnce, RunLater, SetTimer, TransactionEnd
from broker.coordination.runtime import Runtime
from protocol.errors import ErrorCode, KafkaError
from tests.coordination.runtime_harness import START_MS, Bench, Machine

TIMEOUT_MS = 5000


class SlowReplicas(Bench):
    """Followers that have the log up to offset 100, where the first append begins."""

    def __init__(self) -> None:
        super().__init__()
        self.log.replicated_to = 100

    def begin(self, *records: str, reply: object = "done", effects: tuple[str, ...] = ()) -> "asyncio.Future[object]":
        """An operation that writes these records, and its answer."""

        def operation(_machine: Machine, _now_ms: int, token: Hashable) -> Outcome[str]:
            return Outcome(records, (*effects, Reply(token, reply)))

        return self.runtime.begin(operation)


async def turn() -> None:
    """Let what was scheduled run."""
    await asyncio.sleep(0)
    await asyncio.sleep(0)


async def test_a_reply_waits_for_the_high_watermark() -> None:
    """The state is there before: it is the leader's."""
    replicas = SlowReplicas()
    answer = replicas.begin("a", "b", effects=("x",))
    assert [record for record, _, _ in replicas.machine.replayed] == ["a", "b"]
    replicas.log.replicate(101)
    await turn()
    assert (answer.done(), replicas.performed, replicas.machine.unreplicated) == (False, [], ["a", "b"])
    replicas.log.replicate(102)
    assert await answer == "done"
    assert (replicas.performed, replicas.machine.unreplicated, replicas.log.watchers) == (["x"], [], [])


async def test_answers_keep_the_order_of_the_log() -> None:
    """A later operation does not overtake one whose records are not replicated, even where its own are."""
    replicas = SlowReplicas()
    first = replicas.begin("a", effects=("first",))
    replicas.log.replicated_to = 200
    second = replicas.begin("b", effects=("second",))
    assert not second.done()
    replicas.log.replicate(200)
    assert [await first, await second] == ["done", "done"]
    assert replicas.performed == ["first", "second"]


async def test_an_answer_without_records_waits_for_those_before_it() -> None:
    """It was decided on their state. Without any it goes out at once."""
    replicas = SlowReplicas()
    assert replicas.begin(reply=0).result() == 0
    replicas.begin("a")
    empty = replicas.begin(reply=1)
    assert not empty.done()
    replicas.log.replicate()
    assert await empty == 1


async def test_an_answer_without_records_need_not_wait_where_its_machine_knows() -> None:
    """The transaction coordinator refuses what is in transition by itself."""
    replicas = SlowReplicas()
    runtime: Runtime[Machine, str] = Runtime(
        replicas.machine,
        replicas.runtime._codec,
        replicas.log,
        replicas.clock,
        lambda _runtime, _effect: None,
        answers_in_order=False,
    )
    runtime.load()
    replicas.runtime = runtime
    written, empty = replicas.begin("a"), replicas.begin(reply=1)
    assert (written.done(), empty.result()) == (False, 1)


async def test_a_refusal_does_not_wait() -> None:
    """A refusal is sent at once, because no record has to be written for it."""
    replicas = SlowReplicas()
    replicas.begin("a")
    replicas.log.refuse = ErrorCode.NOT_ENOUGH_REPLICAS
    with pytest.raises(KafkaError) as caught:
        replicas.begin("b")
    assert caught.value.code is ErrorCode.NOT_ENOUGH_REPLICAS

    def instead(_machine: Machine, _now_ms: int, token: Hashable) -> Outcome[str]:
        return Outcome(("c",), on_append_error=lambda error, _now_ms: Outcome(effects=(Reply(token, error.code),)))

    assert replicas.runtime.begin(instead).result() is ErrorCode.NOT_ENOUGH_REPLICAS


async def test_a_direct_answer_waits_for_no_replica_and_no_append() -> None:
    """As those futures that Kafka's coordinator completes by itself; other answers and effects are not given."""
    replicas, loop = SlowReplicas(), asyncio.get_running_loop()
    first, second = loop.create_future(), loop.create_future()
    written = replicas.begin("a", effects=(Reply(first, 1, direct=True),))  # type: ignore[arg-type]
    assert (written.done(), first.result()) == (False, 1)
    replicas.log.refuse = ErrorCode.MESSAGE_TOO_LARGE
    with pytest.raises(KafkaError):
        replicas.begin("b", effects=("x", Reply(second, 2, direct=True)))  # type: ignore[arg-type]
    assert (second.result(), replicas.performed) == (2, [])


@pytest.mark.parametrize(("keeps", "fired"), [(False, []), (True, [START_MS + 10])])
async def test_timers_may_be_kept_where_the_log_refuses(keeps: bool, fired: list[int]) -> None:
    """Where soft state has changed that is not taken back."""
    replicas = SlowReplicas()
    replicas.log.refuse = ErrorCode.MESSAGE_TOO_LARGE
    fired_at_ms: list[int] = []

    def note(now_ms: int) -> Outcome[str]:
        fired_at_ms.append(now_ms)
        return Outcome()

    timer = SetTimer("t", START_MS + 10, note)
    assert replicas.runtime.submit(lambda _: Outcome(("a",), (timer, "x"), keeps_timers=keeps))
    replicas.clock.advance(10)
    assert (fired_at_ms, replicas.performed) == (fired, [])


async def test_an_operation_that_fails_with_effects_does_not_wait() -> None:
    """Its answer is that of a refusal; what it has set is set."""
    replicas = SlowReplicas()
    replicas.begin("a")

    def failing(_machine: Machine, _now_ms: int, token: Hashable) -> Outcome[str]:
        return Outcome(effects=("x", Reply(token, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))), failed=True)

    answer: asyncio.Future[object] = replicas.runtime.begin(failing)
    with pytest.raises(KafkaError):
        answer.result()
    assert replicas.performed == ["x"]


async def test_a_reply_that_waits_too_long_can_be_retried() -> None:
    """COORDINATOR_NOT_AVAILABLE, as Kafka answers REQUEST_TIMED_OUT; what else follows still waits for the replicas."""
    replicas = SlowReplicas()
    answer = replicas.begin("a", effects=("x",))
    replicas.clock.advance(TIMEOUT_MS - 1)
    assert not answer.done()
    replicas.clock.advance(1)
    with pytest.raises(KafkaError) as caught:
        answer.result()
    assert caught.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert replicas.performed == []
    replicas.log.replicate()
    await turn()
    assert replicas.performed == ["x"]


async def test_a_coordinator_that_moves_answers_not_coordinator() -> None:
    """Another broker leads the log, and may not have the record: no effect of it is performed here any more."""
    replicas = SlowReplicas()
    answer = replicas.begin("a", effects=("x",))
    replicas.runtime.close()
    with pytest.raises(KafkaError) as caught:
        answer.result()
    assert caught.value.code is ErrorCode.NOT_COORDINATOR
    replicas.log.replicate()
    replicas.clock.advance(TIMEOUT_MS)
    await turn()
    assert (replicas.performed, replicas.log.watchers) == ([], [])


async def test_a_log_that_is_led_elsewhere_replicates_nothing() -> None:
    """The watcher is called before the coordinator is closed; it leaves that to come."""
    replicas = SlowReplicas()
    answer = replicas.begin("a")

    replicas.log.led_elsewhere = True
    replicas.log.replicate()
    await turn()
    assert not answer.done()
    replicas.runtime.close()
    assert isinstance(answer.exception(), KafkaError)


async def test_timers_are_set_at_once() -> None:
    """A session ends in time, with slow replicas too, and soft state changes; operations for later wait."""
    replicas = SlowReplicas()
    fired: list[int] = []
    changed: list[tuple[int, int]] = []

    def note(now_ms: int) -> Outcome[str]:
        fired.append(now_ms)
        return Outcome()

    def change(now_ms: int) -> Outcome[str]:
        changed.append((now_ms, len(replicas.machine.replayed)))
        return Outcome(effects=(timer,))

    timer, later = SetTimer("t", START_MS + 10, note), RunLater(note)
    replicas.runtime.submit(lambda _now_ms: Outcome(("a",), (later, CancelTimer("u"), RunAtOnce(change))))
    assert changed == [(START_MS, 1)]
    await turn()
    replicas.clock.advance(10)
    assert fired == [START_MS + 10]
    replicas.log.replicate()
    await turn()
    assert len(fired) == 2


async def test_a_marker_of_its_log_waits_in_its_turn() -> None:
    """The machine is asked for what is replicated, until the marker is."""
    replicas = SlowReplicas()
    replicas.begin("a")
    replicas.runtime.marker_written(7, 1, committed=True, end_offset=102)
    end = TransactionEnd(7, committed=True)
    assert (replicas.machine.unreplicated, replicas.machine.markers) == (["a", end], [(7, 1, True)])
    replicas.log.replicate(101)
    await turn()
    assert replicas.machine.unreplicated == [end]
    replicas.log.replicate(102)
    await turn()
    assert replicas.machine.unreplicated == []
    replicas.runtime.marker_written(7, 1, committed=True, end_offset=102)
    assert replicas.machine.unreplicated == []
