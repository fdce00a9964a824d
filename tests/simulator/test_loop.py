"""The loop on virtual time ends what would go on for ever."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from simulator.loop import Endless, NothingLeft, Spinning, VirtualLoop, sleep_ms


async def spin() -> None:
    """Never let time pass."""
    loop = asyncio.get_running_loop()
    while True:
        ready = loop.create_future()
        loop.call_soon(ready.set_result, None)
        await ready


async def retry() -> None:
    """Try again each second, as a client does whose request is always refused."""
    while True:
        await sleep_ms(1000)


async def wait() -> None:
    """Wait for what nothing will bring."""
    await asyncio.get_running_loop().create_future()


async def finish() -> str:
    """Take 99 s."""
    await sleep_ms(99_000)
    return "done"


def loop_of_100_s() -> VirtualLoop:
    """A loop for so much virtual time."""
    loop = VirtualLoop()
    loop.limit_s = 100
    return loop


@pytest.mark.slow
@pytest.mark.parametrize(("endless", "problem"), [(spin, Spinning), (retry, Endless), (wait, NothingLeft)])
def test_what_does_not_end_is_ended(endless: Callable[[], Coroutine[Any, Any, None]], problem: type[Exception]) -> None:
    """By the turns at one instant, by the virtual time, or since nothing is left to wait for. Then it can be closed."""
    loop = loop_of_100_s()
    task = loop.create_task(endless())
    with pytest.raises(problem):
        loop.run_until_complete(task)
    task.cancel()
    loop.call_soon(loop.stop)
    loop.run_forever()
    assert task.cancelled()
    loop.close()


def test_the_rest_of_a_time_that_floats_leave_over_passes() -> None:
    """Who waits for it, as the fetcher of aiokafka does, is awake once more, not a thousand times."""
    rests = []

    async def wait_in_all(seconds: float) -> None:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        while (rest := seconds - (loop.time() - began_s)) > 0:
            rests.append(rest)
            await asyncio.wait([loop.create_future()], timeout=rest)

    async def main() -> None:
        await sleep_ms(4_123)
        await wait_in_all(0.1)

    loop = loop_of_100_s()
    loop.run_until_complete(main())
    assert 0 < rests[-1] < 1e-12, "no rest was left over"
    assert len(rests) == 2
    loop.close()


def test_what_ends_in_time_is_not() -> None:
    """Work that ends within the last second is not cut off."""
    loop = loop_of_100_s()
    assert loop.run_until_complete(finish()) == "done"
    loop.close()
