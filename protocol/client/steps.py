"""Exchanges of several requests: a generator yields each request, and is sent its response."""

from collections.abc import Callable, Generator
from typing import Any, NamedTuple, TypeVar

from protocol.apis import ApiKey

T = TypeVar("T")


class Step(NamedTuple):
    """One request of an exchange."""

    key: ApiKey
    version: int
    message: Any


Steps = Generator[Step, Any, T]
Call = Callable[[ApiKey, int, Any], Any]
"""Sends a request and returns its response."""


def run(steps: Steps[T], call: Call) -> T:
    """Carry out an exchange over a blocking transport; return its result."""
    try:
        step = next(steps)
        while True:
            step = steps.send(call(*step))
    except StopIteration as end:
        result: T = end.value
        return result
