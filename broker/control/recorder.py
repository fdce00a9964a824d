"""What has steered a cluster since its start or its last reset, for scenario files."""

from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

_MOST_STEPS, _MOST_BYTES = 1000, 4 * 1024 * 1024


class Done(NamedTuple):
    """A call of a verb that has succeeded. ``made`` is the id of the fault that it made."""

    verb: str
    arguments: Mapping[str, Any]
    at_ms: int
    made: str
    size_bytes: int


class Recorder:
    """The latest of them; the oldest are dropped where there are too many, or too many bytes."""

    def __init__(self) -> None:
        self.steps: deque[Done] = deque()
        self.dropped = 0
        self.resets = 0
        """A command that began before the last one did not steer what there is now."""
        self._bytes = 0

    def add(self, done: Done) -> None:
        """Keep a step."""
        self.steps.append(done)
        self._bytes += done.size_bytes
        while self.steps and (len(self.steps) > _MOST_STEPS or self._bytes > _MOST_BYTES):
            self._bytes -= self.steps.popleft().size_bytes
            self.dropped += 1

    def clear(self) -> None:
        """Begin again, as after a start."""
        self.steps.clear()
        self.dropped = self._bytes = 0
        self.resets += 1
