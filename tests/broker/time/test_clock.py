"""A clock that stops, a clock that runs and can be advanced, and the one way to wait."""

import asyncio
from functools import partial

import pytest

from broker.time.clock import ManualClock, PushedClock, Waiter, all_of, turns

WEEK_MS = 7 * 24 * 3600 * 1000


def test_a_manual_clock_fires_in_order_at_each_timers_own_time() -> None:
    """Timers fire by deadline, see their own time as now, and a cancelled one never fires."""
    clock, seen = ManualClock(100), []
    clock.call_at(130, lambda: seen.append(("late", clock.now_ms())))
    clock.call_at(110, lambda: seen.append(("early", clock.now_ms())))
    clock.call_at(120, lambda: seen.append(("never", 0))).cancel()
    clock.advance(50)
    assert seen == [("early", 110), ("late", 130)]
    assert clock.now_ms() == 150


def test_a_timer_in_the_past_fires_at_once() -> None:
    """A deadline that has passed fires with the next step, and time does not go back."""
    clock, seen = ManualClock(100), []
    clock.call_at(50, lambda: seen.append(clock.now_ms()))
    clock.advance(0)
    assert seen == [100]


async def test_pushing_runs_what_became_due_before_it_returns() -> None:
    """A week passes in a moment: a timer that re-arms itself fires at each of its times, a sleeper wakes."""
    clock = PushedClock(asyncio.get_running_loop())
    start_ms, fired, day_ms = clock.now_ms(), [], 24 * 3600 * 1000

    def every_day() -> None:
        fired.append(clock.now_ms())
        clock.call_at(clock.now_ms() + day_ms, every_day)

    clock.call_at(start_ms + day_ms, every_day)
    sleeper = asyncio.create_task(Waiter().wait(clock, start_ms + WEEK_MS))
    await asyncio.sleep(0)
    await clock.push(WEEK_MS + 1000)
    assert sleeper.done()
    assert sleeper.result() is False
    assert len(fired) == 7
    assert all(0 <= at - (start_ms + (n + 1) * day_ms) < 5000 for n, at in enumerate(fired))
    clock.close()


@pytest.mark.parametrize("turns_of_task", [1, 5, 500])
async def test_what_a_timer_wakes_has_run_before_the_next_timer_fires(turns_of_task: int) -> None:
    """However many turns of the loop it takes, and through whom: a task, its child, a call of each."""
    loop = asyncio.get_running_loop()
    clock, seen = PushedClock(loop), list[str]()
    clock.freeze()
    start_ms, waiter = clock.now_ms(), Waiter()

    async def child() -> None:
        await turns(turns_of_task)
        loop.call_soon(seen.append, "woken")

    async def sleeper() -> None:
        await waiter.wait(clock, start_ms + 10)
        await turns(turns_of_task)
        await asyncio.gather(child(), child())

    task = asyncio.create_task(sleeper())
    clock.call_at(start_ms + 11, lambda: seen.append("next timer"))
    await asyncio.sleep(0)
    await clock.push(20)
    assert seen == ["woken", "woken", "next timer"]
    assert task.done()
    clock.close()


async def test_a_push_does_not_wait_for_what_no_timer_woke() -> None:
    """A task that never rests, as under load, keeps no push from its end; nor does a woken one that waits on a peer."""
    loop = asyncio.get_running_loop()
    clock, peer = PushedClock(loop), loop.create_future()

    async def busy() -> None:
        await turns(1_000_000)

    async def waits_for_a_peer() -> None:
        await Waiter().wait(clock, clock.now_ms() + 10)
        await peer

    tasks = [asyncio.create_task(busy()), asyncio.create_task(waits_for_a_peer())]
    await asyncio.sleep(0)
    await asyncio.wait_for(clock.push(20), 60)
    assert [task.done() for task in tasks] == [False, False]
    tasks[0].cancel()
    peer.set_result(None)
    await tasks[1]
    clock.close()


async def test_a_call_that_is_cancelled_is_not_waited_for() -> None:
    """A transport cancels calls when it closes."""
    loop = asyncio.get_running_loop()
    clock, called = PushedClock(loop), list[int]()
    clock.call_at(clock.now_ms() + 10, lambda: loop.call_soon(called.append, 1).cancel())
    await asyncio.wait_for(clock.push(20), 60)
    assert called == []
    clock.close()


async def test_pushes_of_several_clusters_do_not_wait_for_each_other() -> None:
    """Each has a clock on the same loop; once all are over, the loop is as it was."""
    loop = asyncio.get_running_loop()
    clocks = [PushedClock(loop), PushedClock(loop)]
    calls = loop.call_soon

    async def endless(clock: PushedClock) -> None:
        await Waiter().wait(clock, clock.now_ms() + 10)
        await turns(1_000_000)

    task = asyncio.create_task(endless(clocks[0]))
    await asyncio.sleep(0)
    first = asyncio.create_task(clocks[0].push(20))
    await asyncio.sleep(0)
    await asyncio.wait_for(clocks[1].push(20), 60)
    assert not first.done()
    task.cancel()
    await first
    assert loop.call_soon == calls
    for clock in clocks:
        clock.close()


async def test_a_push_ends_though_what_it_woke_goes_on() -> None:
    """If the clock is frozen meanwhile, or its caller has given up."""
    clock = PushedClock(asyncio.get_running_loop())

    async def endless() -> None:
        await Waiter().wait(clock, clock.now_ms() + 10)
        await turns(1_000_000)

    async def gone() -> bool:
        return True

    for give_up in (None, gone):
        task = asyncio.create_task(endless())
        await asyncio.sleep(0)
        push = asyncio.create_task(clock.push(20, give_up))
        await turns(3)
        if give_up is None:
            assert not push.done()
            clock.freeze()
        await asyncio.wait_for(push, 60)
        assert not task.done()
        task.cancel()
        clock.thaw()
    clock.close()


async def test_a_long_poll_that_begins_during_a_push_waits_from_its_end_on() -> None:
    """A client that polls again with each response would otherwise be served twice a second for the pushed week."""
    clock = PushedClock(asyncio.get_running_loop())
    clock.freeze()
    start_ms, polls = clock.now_ms(), list[int]()

    async def polling() -> None:
        while True:
            await Waiter().wait(clock, clock.poll_deadline_ms(500))
            polls.append(clock.now_ms())

    client = asyncio.create_task(polling())
    clock.call_at(start_ms + WEEK_MS // 2, clock.note_work)
    await asyncio.sleep(0)
    await clock.push(WEEK_MS)
    assert polls == [start_ms + 500]
    await clock.push(1000)
    assert polls == [start_ms + 500, start_ms + WEEK_MS + 500]
    client.cancel()
    clock.close()


async def test_the_clock_is_ahead_by_the_sum_of_all_pushes() -> None:
    """Though the machine's time goes on while timers fire: 15 minutes left it 899999 ms ahead."""
    machine_ns = [0]
    clock = PushedClock(asyncio.get_running_loop(), lambda: machine_ns[0])

    def slow() -> None:
        machine_ns[0] += 7_000_000

    clock.call_at(500, slow)
    await clock.push(1000)
    assert (clock.pushed_ms, clock.now_ms()) == (1000, 1007)
    clock.call_at(1500, slow)
    await clock.push(1000)
    assert (clock.pushed_ms, clock.now_ms()) == (2000, 2014)
    clock.close()


async def test_a_frozen_clock_moves_by_pushing_only() -> None:
    """Freeze, push, thaw: time goes on from where it was left."""
    clock = PushedClock(asyncio.get_running_loop())
    clock.freeze()
    at_ms = clock.now_ms()
    woken = asyncio.create_task(Waiter().wait(clock, at_ms + 1))
    for _ in range(50):
        await asyncio.sleep(0)
    assert clock.now_ms() == at_ms
    assert not woken.done()
    await clock.push(1)
    assert clock.now_ms() == at_ms + 1
    assert await woken is False
    clock.thaw()
    assert clock.now_ms() >= at_ms + 1
    assert not clock.frozen
    clock.close()


async def test_a_frozen_clock_fires_what_is_due_already() -> None:
    """A delay of zero is over at once, though the clock is frozen."""
    clock = PushedClock(asyncio.get_running_loop())
    clock.freeze()
    fired = asyncio.Event()
    clock.call_at(clock.now_ms(), fired.set)
    await asyncio.wait_for(fired.wait(), 60)
    assert clock.frozen
    clock.close()


def test_cancelled_timers_do_not_pile_up() -> None:
    """A heartbeat replaces its session's timer: ten thousand of them leave a handful behind, and the living fire."""
    clock, seen = ManualClock(), []
    clock.call_at(1000, lambda: seen.append("alive"))
    for n in range(10_000):
        clock.call_at(45_000 + n, lambda: seen.append("never")).cancel()
    assert len(clock._timers) < 200
    clock.advance(100_000)
    assert seen == ["alive"]


async def test_real_time_fires_timers_too() -> None:
    """Without a push the alarm rings by itself."""
    clock = PushedClock(asyncio.get_running_loop())
    assert await asyncio.wait_for(Waiter().wait(clock, clock.now_ms() + 5), 60) is False
    clock.close()


async def test_a_timer_comes_as_much_earlier_as_the_clock_was_pushed() -> None:
    """The alarm of a timer that a push did not reach was set for longer than is left now."""
    loop = asyncio.get_running_loop()
    clock, rang, begin = PushedClock(loop), asyncio.Event(), loop.time()
    clock.call_at(clock.now_ms() + 30_000, rang.set)
    await clock.push(29_950)
    await asyncio.wait_for(rang.wait(), 60)
    assert loop.time() - begin < 20
    clock.close()


async def test_a_timer_that_fails_in_a_push_keeps_no_other_from_its_time() -> None:
    """The next one is due by the time that was reached."""
    clock, rang = PushedClock(asyncio.get_running_loop()), asyncio.Event()
    clock.call_at(clock.now_ms() + 30_000, partial(dict[str, None]().__getitem__, "missing"))
    clock.call_at(clock.now_ms() + 30_050, rang.set)
    with pytest.raises(KeyError):
        await clock.push(60_000)
    await asyncio.wait_for(rang.wait(), 60)
    clock.close()


@pytest.mark.parametrize("frozen_ms", [None, 1_000_000])
async def test_waits_stay_as_long_as_they_were_when_the_clock_goes_back(frozen_ms: int | None) -> None:
    """What waits on a connection outlives a restore: it does not wait for the time that was pushed before, too."""
    clock, fired = PushedClock(asyncio.get_running_loop()), []
    await clock.push(WEEK_MS)
    clock.freeze()
    clock.call_at(clock.now_ms() + 5000, lambda: fired.append("second"))
    clock.call_at(clock.now_ms() + 4000, lambda: fired.append("first"))
    clock.put(0, frozen_ms)
    clock.freeze()
    await clock.push(4999 if frozen_ms else 4000)
    assert fired == ["first"]
    await clock.push(2)
    assert fired == (["first", "second"] if frozen_ms else ["first"])
    clock.reset()
    clock.close()


async def test_a_waiter_reports_that_it_was_woken() -> None:
    """Woken before the deadline: true; it can be used again."""
    clock = PushedClock(asyncio.get_running_loop())
    waiter = Waiter()
    waiter.wake()
    assert await waiter.wait(clock, clock.now_ms() + 60_000) is True
    waiter.again()
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(waiter.wait(clock, clock.now_ms() + 60_000), 0.001)
    clock.close()


async def test_parts_are_done_a_hundred_at_a_time() -> None:
    """The results are in order, and a single one takes no further turn of the loop."""
    under_way: list[int] = []
    most = 0

    async def part(number: int) -> int:
        nonlocal most
        under_way.append(number)
        most = max(most, len(under_way))
        await turns(1)
        under_way.remove(number)
        return number

    assert await all_of(map(part, range(350))) == list(range(350))
    assert most == 100
    assert await all_of(map(part, ())) == []

    async def at_once() -> str:
        return "done"

    single = all_of([at_once()])
    with pytest.raises(StopIteration, match="done"):
        single.send(None)
