"""Plain functions that run in slices, between which the loop goes on."""

import asyncio
from collections.abc import Callable

import pytest

from broker.time import long_work
from broker.time.clock import turns
from broker.time.long_work import LongWork
from protocol.pauses import pause

STEPS = 50


@pytest.fixture(autouse=True)
def each_pause_ends_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    """However fast the machine is."""
    monkeypatch.setattr(long_work, "_SLICE_US", 0)


def deep(step: Callable[[], None], depth: int = 20) -> None:
    """Calls it within calls, as work pauses."""
    if depth:
        deep(step, depth - 1)
    else:
        step()
        pause()


def work(seen: list[int], *, fails: bool = False) -> Callable[[], int]:
    """Work that notes its steps; its result is how many they are."""

    def run() -> int:
        for number in range(STEPS):
            deep(lambda number=number: seen.append(number))  # type: ignore[misc]
        if fails:
            raise ValueError("as it should")
        return len(seen)

    return run


def test_the_loop_goes_on_at_each_pause() -> None:
    """Another task sees every state in between; without long work it sees none."""

    async def run(*, at_length: bool) -> set[int]:
        seen: list[int] = []
        between: set[int] = set()
        ended = asyncio.Event()

        async def look() -> None:
            while not ended.is_set():
                between.add(len(seen))
                await turns(1)

        looking = asyncio.create_task(look())
        await turns(2)
        assert await LongWork(work(seen)).run() == STEPS if at_length else work(seen)() == STEPS
        ended.set()
        await looking
        return between

    assert asyncio.run(run(at_length=True)) >= set(range(1, STEPS))
    assert asyncio.run(run(at_length=False)) == {0}


def test_who_needs_the_end_gets_it_at_once() -> None:
    """``finish`` runs what is left in one go; twice is once."""

    async def run() -> None:
        seen: list[int] = []
        long = LongWork(work(seen))
        running = asyncio.create_task(long.run())
        await turns(5)
        assert 0 < len(seen) < STEPS
        long.finish()
        assert seen == list(range(STEPS))
        long.finish()
        assert await running == STEPS

    asyncio.run(run())


def test_an_error_is_raised_where_the_work_was_begun() -> None:
    """An error of long work is raised to its caller, not in the turn that finished it."""

    async def run() -> None:
        with pytest.raises(ValueError, match="as it should"):
            await LongWork(work([], fails=True)).run()
        long = LongWork(work([], fails=True))
        running = asyncio.create_task(long.run())
        await turns(2)
        long.finish()
        with pytest.raises(ValueError, match="as it should"):
            await running

    asyncio.run(run())


def test_a_caller_that_hangs_up_leaves_nothing_half_done() -> None:
    """The work goes on to its end, then its task is cancelled."""

    async def run() -> None:
        seen: list[int] = []
        running = asyncio.create_task(LongWork(work(seen)).run())
        await turns(5)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert len(seen) == STEPS

    asyncio.run(run())


def test_work_may_finish_other_work() -> None:
    """A pause then goes back to who gave it its slice."""

    async def run() -> None:
        first: list[int] = []
        second: list[int] = []
        long = LongWork(work(first))
        running = asyncio.create_task(long.run())
        await turns(5)
        assert 0 < len(first) < STEPS

        def both() -> int:
            pause()
            long.finish()
            assert len(first) == STEPS
            return work(second)()

        assert await LongWork(both).run() == STEPS
        assert await running == STEPS

    asyncio.run(run())


def test_work_that_finishes_itself_goes_on() -> None:
    """As an effect of an operation does that begins another one."""

    async def run() -> None:
        longs: list[LongWork[int]] = []

        def itself() -> int:
            longs[0].finish()
            pause()
            return 1

        longs.append(LongWork(itself))
        assert await longs[0].run() == 1

    asyncio.run(run())
