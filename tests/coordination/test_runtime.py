"""The shell around a machine: append, replay, perform; in this order, all or nothing (Kafka: CoordinatorRuntime)."""

import asyncio
from collections.abc import Hashable
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from broker.coordination.outcome import CancelTimer, Outcome, Reply, RunLater, SetTimer, TransactionalAppend
from broker.coordination.runtime import State
from protocol.errors import ErrorCode, KafkaError
from tests.coordination.runtime_harness import START_MS, Batch, Bench, Machine, check_raises

# --- loading ---------------------------------------------------------------------------------------------------------


async def test_a_log_that_cannot_be_read_leaves_no_coordinator() -> None:
    """Its directory went offline before a timer was to load the coordinator: an error would be lost in the clock."""
    bench = Bench(Batch([b"a"]), load=False)
    bench.log.unreadable = ErrorCode.KAFKA_STORAGE_ERROR
    bench.clock.call_at(START_MS + 5, bench.runtime.load)
    await check_raises(bench.ask(lambda _token: Outcome()), ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    with capture_logs() as logs:
        bench.clock.advance(5)
    assert [each["event"] for each in logs] == ["coordinator cannot be loaded"]
    await check_raises(bench.ask(lambda _token: Outcome()), ErrorCode.NOT_COORDINATOR)


# --- asking ----------------------------------------------------------------------------------------------------------


async def test_records_are_appended_then_replayed_then_the_reply_goes() -> None:
    """One batch at the clock's time; the machine sees each record with its offset."""
    bench = Bench()
    reply = await bench.ask(lambda token: Outcome(("a", "b"), (Reply(token, "done"),)))
    assert reply == "done"
    assert bench.log.appended == [([(b"k", b"a"), (b"k", b"b")], START_MS, None)]
    assert bench.machine.replayed == [("a", 100, False), ("b", 101, False)]


async def test_an_operation_gets_the_machine_and_the_time() -> None:
    """Both are arguments of the operation."""
    bench = Bench()

    def operation(machine: Machine, now_ms: int, token: Hashable) -> Outcome[str]:
        return Outcome(effects=(Reply(token, (machine is bench.machine, now_ms)),))

    assert await bench.runtime.ask(operation) == (True, START_MS)


async def test_an_outcome_without_records_appends_nothing() -> None:
    """An outcome without records appends nothing, and its reply is sent."""
    bench = Bench()
    assert await bench.ask(lambda token: Outcome(effects=(Reply(token, 1),))) == 1
    assert bench.log.appended == []


async def test_an_operation_that_refuses_changes_nothing() -> None:
    """An operation that raises changes no state, and its caller gets the error."""
    bench = Bench()

    def refuse(_machine: Machine, _now_ms: int, _token: Hashable) -> Outcome[str]:
        raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)

    await check_raises(bench.runtime.ask(refuse), ErrorCode.FENCED_INSTANCE_ID)
    assert (bench.log.appended, bench.machine.replayed) == ([], [])


async def test_a_log_that_refuses_changes_nothing() -> None:
    """If the log refuses the records, nothing is replayed and no effect performed."""
    bench = Bench()
    bench.log.refuse = ErrorCode.NOT_ENOUGH_REPLICAS
    outcome = bench.ask(lambda token: Outcome(("a",), (Reply(token, 1), "x")))
    await check_raises(outcome, ErrorCode.NOT_ENOUGH_REPLICAS)
    assert (bench.machine.replayed, bench.performed) == ([], [])


async def test_records_that_need_not_be_one_batch_are_several_where_they_are_too_many() -> None:
    """In order, as large as the log takes them; the effects come once, after the last."""
    bench = Bench()
    bench.log.most = 3
    outcome: Outcome[str] = Outcome(tuple("abcdefg"), ("own",), divisible=True)
    bench.runtime.submit(lambda _now_ms: outcome)
    assert [len(records) for records, _, _ in bench.log.appended] == [3, 2, 2]
    assert [(record, offset) for record, offset, _ in bench.machine.replayed] == list(
        zip("abcdefg", range(100, 107), strict=True)
    )
    assert bench.performed == ["own"]
    with capture_logs() as logs:
        bench.runtime.submit(lambda _now_ms: replace(outcome, divisible=False))
        bench.log.most = 0
        bench.runtime.submit(lambda _now_ms: outcome)
    assert [each["event"] for each in logs] == ["coordinator operation failed"] * 2
    assert (len(bench.machine.replayed), bench.performed) == (7, ["own"])


async def test_records_that_cannot_be_written_change_nothing() -> None:
    """Half of a surrogate pair, or a name too long: UNKNOWN_SERVER_ERROR, which undoes what there is to undo."""
    bench = Bench()

    def outcome(token: Hashable) -> Outcome[str]:
        return Outcome(
            ("a", "\ud800"),
            (Reply(token, "done"),),
            on_append_error=lambda error, _now_ms: Outcome(effects=(Reply(token, error.code),)),
        )

    with capture_logs() as logs:
        assert await bench.ask(outcome) is ErrorCode.UNKNOWN_SERVER_ERROR
        refused = bench.ask(lambda token: Outcome(("\ud800",), (Reply(token, 1),)))
        await check_raises(refused, ErrorCode.UNKNOWN_SERVER_ERROR)
    assert {each["event"] for each in logs} == {"record cannot be written"}
    assert (bench.log.appended, bench.machine.replayed) == ([], [])
    assert await bench.ask(lambda token: Outcome(("a",), (Reply(token, 1),))) == 1


async def test_an_outcome_may_know_what_to_do_when_the_log_refuses() -> None:
    """Its effects are performed; records of the second outcome do not count."""
    bench = Bench()
    bench.log.refuse = ErrorCode.NOT_ENOUGH_REPLICAS

    def outcome(token: Hashable) -> Outcome[str]:
        def instead(error: KafkaError, now_ms: int) -> Outcome[str]:
            return Outcome(("never",), (Reply(token, (error.code, now_ms)),))

        return Outcome(("a",), (Reply(token, "done"),), on_append_error=instead)

    assert await bench.ask(outcome) == (ErrorCode.NOT_ENOUGH_REPLICAS, START_MS)
    assert bench.machine.replayed == []


async def test_a_reply_may_be_an_error() -> None:
    """It is raised where it was waited for."""
    bench = Bench()
    refusal = KafkaError(ErrorCode.ILLEGAL_GENERATION)
    await check_raises(bench.ask(lambda token: Outcome(effects=(Reply(token, refusal),))), ErrorCode.ILLEGAL_GENERATION)


async def test_records_of_a_transaction_are_appended_and_replayed_as_such() -> None:
    """Records of a TxnOffsetCommit are appended as a transactional batch and replayed as pending."""
    bench = Bench()
    transaction = TransactionalAppend(7, 1, "tx")
    await bench.ask(lambda token: Outcome(("a",), (Reply(token, 1),), transaction))
    assert bench.log.appended[0][2] is transaction
    assert bench.machine.replayed == [("a", 100, True)]


async def test_a_parked_request_is_answered_by_another_ones_outcome() -> None:
    """JoinGroup: the first waits for the second."""
    bench = Bench()

    def park(machine: Machine, _now_ms: int, token: Hashable) -> Outcome[str]:
        machine.parked.append(token)
        return Outcome()

    first: asyncio.Task[str] = asyncio.create_task(bench.runtime.ask(park))
    await asyncio.sleep(0)
    second = await bench.ask(
        lambda token: Outcome(effects=(Reply(bench.machine.parked[0], "both"), Reply(token, "both")))
    )
    assert (await first, second) == ("both", "both")


async def test_an_answer_to_a_caller_that_is_gone_is_dropped() -> None:
    """The reply to a caller that is gone is dropped, and the others get theirs."""
    bench = Bench()
    gone = asyncio.get_running_loop().create_future()
    gone.cancel()
    assert await bench.ask(lambda token: Outcome(effects=(Reply(gone, 1), Reply(token, 2)))) == 2


async def test_other_effects_are_performed_in_order() -> None:
    """They are performed once the records are appended."""
    bench = Bench()
    bench.runtime.submit(lambda _now_ms: Outcome(("a",), ("x", "y")))
    assert bench.performed == ["x", "y"]


async def test_an_operation_for_later_runs_in_a_turn_of_its_own() -> None:
    """It runs after the reply has gone out."""
    bench = Bench()
    later = RunLater(lambda now_ms: Outcome((f"later at {now_ms}",)))
    await bench.ask(lambda token: Outcome(("a",), (later, Reply(token, 1))))
    assert [record for record, _, _ in bench.machine.replayed] == ["a"]
    await asyncio.sleep(0)
    assert [record for record, _, _ in bench.machine.replayed] == ["a", f"later at {START_MS}"]


# --- timers ----------------------------------------------------------------------------------------------------------


def arm(bench: Bench, key: str, at_ms: int, record: str) -> None:
    """A timer that appends a record."""
    timer = SetTimer(key, at_ms, lambda now_ms: Outcome((f"{record} at {now_ms}",)))
    bench.runtime.submit(lambda _now_ms: Outcome(effects=(timer,)))


def test_a_timer_is_an_operation_of_its_own() -> None:
    """A timer of a coordinator fires at its time, once, as an operation of its own."""
    bench = Bench()
    arm(bench, "t", START_MS + 10, "fired")
    bench.clock.advance(9)
    assert bench.machine.replayed == []
    bench.clock.advance(100)
    assert bench.machine.replayed == [(f"fired at {START_MS + 10}", 100, False)]


def test_a_timer_of_the_same_key_replaces_the_first() -> None:
    """A timer replaces the earlier one of its key, as each heartbeat does."""
    bench = Bench()
    arm(bench, "t", START_MS + 10, "first")
    arm(bench, "t", START_MS + 20, "second")
    bench.clock.advance(100)
    assert [record for record, _, _ in bench.machine.replayed] == [f"second at {START_MS + 20}"]


def test_a_timer_may_be_cancelled() -> None:
    """Cancelling a timer that does not exist does nothing."""
    bench = Bench()
    arm(bench, "t", START_MS + 10, "fired")
    bench.runtime.submit(lambda _now_ms: Outcome(effects=(CancelTimer("t"), CancelTimer("other"))))
    bench.clock.advance(100)
    assert bench.machine.replayed == []


def test_a_timer_that_is_refused_is_logged() -> None:
    """No caller waits for it, so the log is the only place."""
    bench = Bench()
    bench.log.refuse = ErrorCode.NOT_ENOUGH_REPLICAS
    arm(bench, "t", START_MS + 10, "fired")
    with capture_logs() as lines:
        bench.clock.advance(10)
    assert [line["event"] for line in lines] == ["coordinator operation failed"]


# --- life ------------------------------------------------------------------------------------------------------------


async def test_requests_are_refused_while_it_loads() -> None:
    """Requests get COORDINATOR_LOAD_IN_PROGRESS while the coordinator loads."""
    bench = Bench(load=False)
    await check_raises(bench.ask(lambda _token: Outcome()), ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


def test_loading_replays_the_whole_log() -> None:
    """Records, markers, and records of transactions; what is not known is passed over."""
    bench = Bench(
        Batch([b"a", None, b"b"]),
        Batch([b"c"], base=3, is_transactional=True),
        Batch([], marker=True),
    )
    assert bench.machine.replayed == [("a", 0, False), ("b", 2, False), ("c", 3, True)]
    assert bench.machine.markers == [(7, 1, True)]
    assert bench.log.appended == []


def test_what_was_loaded_may_arm_timers() -> None:
    """The operation after loading may append, like any other."""
    bench = Bench(load=False)
    bench.machine.on_load = Outcome(("again",))
    bench.runtime.load()
    assert bench.machine.replayed == [("again", 100, False)]
    assert bench.runtime.state is State.ACTIVE


def test_records_that_cannot_be_read_are_passed_over() -> None:
    """They are logged, and the coordinator serves all the others."""
    with capture_logs() as lines:
        bench = Bench(Batch([b"a", b"\xff", b"poison", b"b"]))
    assert [record for record, _, _ in bench.machine.replayed] == ["a", "b"]
    assert bench.runtime.state is State.ACTIVE
    assert [(line["event"], line["offset"]) for line in lines] == [("record skipped", 1), ("record skipped", 2)]


def test_many_bad_records_are_few_lines() -> None:
    """Ten lines are logged one by one, the others as a count."""
    with capture_logs() as lines:
        Bench(Batch([b"\xff"] * 500))
    assert len(lines) == 11
    assert lines[-1]["count"] == 490


async def test_closing_answers_parked_requests_and_stops_the_timers() -> None:
    """NOT_COORDINATOR, for them and for all later requests."""
    bench = Bench()
    arm(bench, "t", START_MS + 10, "fired")
    token = asyncio.get_running_loop().create_future()
    bench.machine.parked.append(token)
    bench.runtime.close()
    await check_raises(token, ErrorCode.NOT_COORDINATOR)
    await check_raises(bench.ask(lambda _token: Outcome()), ErrorCode.NOT_COORDINATOR)
    bench.clock.advance(100)
    bench.runtime.submit(lambda _now_ms: Outcome(("late",)))
    assert bench.log.appended == []


def test_a_runtime_that_was_closed_does_not_load() -> None:
    """The partition moved on while it waited for its turn."""
    bench = Bench(Batch([b"a"]), load=False)
    bench.runtime.close()
    bench.runtime.load()
    assert (bench.machine.replayed, bench.runtime.state) == ([], State.CLOSED)


@pytest.mark.parametrize("load", [True, False])
def test_a_marker_concerns_a_coordinator_that_is_active(load: bool) -> None:
    """One that still loads finds it in its log."""
    bench = Bench(load=load)
    bench.runtime.marker_written(7, 1, committed=False, end_offset=101)
    assert bench.machine.markers == ([(7, 1, False)] if load else [])
