"""Work that is begun outside of a task, and goes on in one."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from broker.time.clock import Begun, begin


async def awaited(begun: Begun) -> None:
    """Go on with it."""
    await begun


def test_work_that_waits_for_nothing_is_done_at_once() -> None:
    """Work that waits for nothing completes without an event loop."""
    seen: list[str] = []

    async def work() -> None:
        seen.append("done")

    assert begin(work()) is None
    assert seen == ["done"]


def test_work_that_waits_goes_on_in_a_task() -> None:
    """Through several waits of different kinds: a future, a turn of the loop, an error."""
    seen: list[str] = []

    async def work(future: asyncio.Future[str]) -> None:
        seen.append("begun")
        seen.append(await future)
        await asyncio.sleep(0)
        failing: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(failing.set_exception, KeyError("x"))
        with pytest.raises(KeyError):
            await failing
        seen.append("end")

    async def run() -> None:
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        begun = begin(work(future))
        assert begun is not None
        assert seen == ["begun"]
        future.set_result("answered")  # before a task has begun to wait
        await awaited(begun)

    asyncio.run(run())
    assert seen == ["begun", "answered", "end"]


def test_an_error_before_the_first_wait_is_raised_where_it_is_awaited() -> None:
    """The caller of `begin`, a transport, could only log it."""

    async def work() -> None:
        raise ValueError("broken")

    begun = begin(work())
    assert begun is not None
    with pytest.raises(ValueError, match="broken"):
        asyncio.run(awaited(begun))


@pytest.mark.parametrize("in_task", [True, False])
def test_work_learns_that_it_is_cancelled(in_task: bool) -> None:
    """By its task, or before one has taken it over."""
    seen: list[str] = []

    async def work() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    async def run() -> None:
        begun = begin(work())
        assert begun is not None
        if not in_task:
            begun.cancel()
            return
        going_on: Coroutine[Any, Any, None] = awaited(begun)
        task = asyncio.create_task(going_on)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert seen == ["cancelled"]


def test_cancelled_work_that_waits_once_more_is_closed() -> None:
    """No task is there that could wait for it: what it would do afterwards is not done, and nothing is left of it."""
    seen: list[str] = []

    async def work() -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.create_future()
        finally:
            try:
                await loop.create_future()
            finally:
                seen.append("closed")

    async def run() -> None:
        begun = begin(work())
        assert begun is not None
        begun.cancel()
        assert seen == ["closed"]

    asyncio.run(run())
