"""Waiting in the asynchronous client. `understudy.client.waiting` has the same names for the blocking one."""

import threading
from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeAlias, TypeVar

T = TypeVar("T")
Answer: TypeAlias = Awaitable[Any]
"""Return type of a transport."""


async def in_thread(work: Callable[..., T], *arguments: Any, undo: Callable[[T], object] | None = None) -> T:
    """Run blocking work (to start or stop a process) in a thread, to its end even if the task is cancelled.

    A task that asyncio cancels does not wait for the end; ``undo`` then gets the result of the work, in a thread too.
    """
    import anyio

    results: list[T] = []
    left = threading.Event()

    def take_back() -> None:
        with suppress(IndexError):  # each of the two threads may be the later one, and one of them takes it
            result = results.pop()
            if undo is not None:
                undo(result)

    def do() -> None:
        results.append(work(*arguments))
        if left.is_set():
            take_back()

    try:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(do)
    except BaseException:
        left.set()
        if results:
            threading.Thread(target=take_back).start()
        raise
    return results.pop()


class Leavable(Protocol):
    """Protocol of asynchronous context managers."""

    async def __aenter__(self) -> Self:
        """Enter."""
        ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave."""
        ...


E = TypeVar("E", bound=Leavable)


class Pending(Generic[E]):
    """An object in the making: `await` returns it, `async with` also leaves it at the end of the block."""

    def __init__(self, making: Awaitable[E]) -> None:
        self.making = making
        self.resource: E | None = None

    def __await__(self) -> Generator[Any, Any, E]:
        """Wait for the object."""
        return self.making.__await__()

    async def __aenter__(self) -> E:
        """Wait for the object, and enter it."""
        self.resource = await self.making
        return await self.resource.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the object."""
        if self.resource is not None:
            await self.resource.__aexit__(kind, error, trace)


def pending(making: Awaitable[E]) -> Pending[E]:
    """Wrap a coroutine that makes an object."""
    return Pending(making)
