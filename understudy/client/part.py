# Made from understudy/aio/part.py by tools/generate_client.py: change it there.
"""What every part of a cluster has: the names that lead to it, and the way to ask."""

from collections.abc import Callable, Mapping
from typing import Any

Ask = Callable[[str, Mapping[str, Any]], Any]


class Part:
    """A part of a cluster: the names that lead to it, and the way to ask."""

    def __init__(self, ask: Ask, **names: object) -> None:
        self._send = ask
        self._names = names

    def _ask(self, words: str, **arguments: object) -> Any:
        __tracebackhide__ = True
        return self._send(words, {**self._names, **arguments})
