"""What every part of a cluster has: the names that lead to it, and the way to ask."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

Ask = Callable[[str, Mapping[str, Any]], Awaitable[Any]]


class AsyncPart:
    """A part of a cluster: the names that lead to it, and the way to ask."""

    def __init__(self, ask: Ask, **names: object) -> None:
        self._send = ask
        self._names = names

    async def _ask(self, words: str, **arguments: object) -> Any:
        __tracebackhide__ = True
        return await self._send(words, {**self._names, **arguments})
