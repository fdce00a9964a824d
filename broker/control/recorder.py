"""Recorder of the verbs that changed a cluster since its start or last reset, for scenario files."""

from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

_MOST_STEPS, _MOST_BYTES = 1000, 4 * 1024 * 1024
"""The newest; half of the largest body that `scenario run` accepts: ours, a scenario that is longer cannot be read."""


class Done(NamedTuple):
    """A successful call of a verb. ``fault_id`` is that of the fault that it added."""

    verb: str
    arguments: Mapping[str, Any]
    at_ms: int
    fault_id: str
    size_bytes: int


class Recorder:
    """The latest calls, bounded by number and by bytes; the oldest are dropped."""

    def __init__(self) -> None:
        self.steps: deque[Done] = deque()
        self.dropped = 0
        self.resets = 0
        """The number of resets. A call that began before the last reset did not change the current state."""
        self._bytes = 0

    def add(self, done: Done) -> None:
        """Append a call."""
        self.steps.append(done)
        self._bytes += done.size_bytes
        while self.steps and (len(self.steps) > _MOST_STEPS or self._bytes > _MOST_BYTES):
            self._bytes -= self.steps.popleft().size_bytes
            self.dropped += 1

    def clear(self) -> None:
        """Remove all calls, as after a start."""
        self.steps.clear()
        self.dropped = self._bytes = 0
        self.resets += 1
