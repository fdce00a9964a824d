"""Waiting in the blocking client, which is a plain call. The names are those of `understudy.aio.waiting`."""

from collections.abc import Callable
from typing import Annotated, Any, TypeAlias, TypeVar

T = TypeVar("T")
Answer: TypeAlias = Any
"""Return type of a transport."""
Pending: TypeAlias = Annotated[T, "there already"]


def in_thread(work: Callable[..., T], *arguments: Any, undo: Callable[[T], object] | None = None) -> T:  # noqa: ARG001
    """Run blocking work (to start or stop a process). No task can be cancelled here, so there is nothing to undo."""
    return work(*arguments)


def pending(resource: T) -> T:
    """Return the object itself."""
    return resource
