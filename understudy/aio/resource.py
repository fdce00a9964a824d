"""Base class of the parts of a cluster, such as topics and groups."""

from collections.abc import Callable, Mapping
from typing import Any

from understudy.aio.waiting import Answer

Ask = Callable[[str, Mapping[str, Any]], Answer]


class AsyncPart:
    """A part of a cluster: the path parameters that identify it, and the transport."""

    def __init__(self, ask: Ask, **names: object) -> None:
        self._send = ask
        self._names = names

    async def _ask(self, verb: str, **arguments: object) -> Any:
        __tracebackhide__ = True
        return await self._send(verb, {**self._names, **arguments})


def without_none(**arguments: object) -> dict[str, object]:
    """Return the arguments that are not None."""
    return {name: value for name, value in arguments.items() if value is not None}
