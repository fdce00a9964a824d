"""A driver's share group member (KIP-932)."""

from collections.abc import Mapping, Sequence
from typing import Any

from understudy.exam.driver import CallError, LibraryError
from understudy.exam.exercise import REQUEST_TIMEOUT_MS, Consumer, Exercise


class ShareConsumer(Consumer):
    """A share group member, which acknowledges what it has read."""

    def acknowledge(self, kind: str, records: Sequence[Mapping[str, Any]]) -> None:
        """Acknowledge records: `accept`, `release` or `reject`."""
        places = [{each: record[each] for each in ("topic", "partition", "offset")} for record in records]
        self.exercise.driver.call("acknowledge", consumer=self.name, type=kind, records=places)

    def commit(self) -> LibraryError | None:
        """Send the acknowledgements; return the library's error."""
        try:
            timeout_ms = self.exercise.timeout_ms
            self.exercise.driver.call("commit_acknowledgements", consumer=self.name, timeout_ms=timeout_ms)
        except CallError as error:
            return error.error
        return None

    def accept(self, count: int) -> None:
        """Read that many records in total, accept each, and commit."""
        until = self.exercise.deadline()
        while len(self.read) < count and not self.exercise.past(until):
            before = len(self.read)
            if self.poll():
                self.acknowledge("accept", self.read[before:])
                self.commit()


def share_consumer(exercise: Exercise, group: str = "s") -> ShareConsumer:
    """Create a member of a share group."""
    options = {"group": group, "request_timeout_ms": REQUEST_TIMEOUT_MS}
    return ShareConsumer(exercise, exercise.create("share_consumer", options))
