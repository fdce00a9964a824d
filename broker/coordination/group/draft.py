"""An outcome while it is being written.

One request may remove members, end a join phase and answer a dozen parked requests; the rules hand one draft from one
to the next, and each adds what follows from it.
"""

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

from broker.coordination.outcome import CancelTimer, Effect, Notify, Outcome, Reply, SetTimer
from protocol.errors import KafkaError
from protocol.log_records.group import GroupRecord

SOON = "soon"
"""A notice with an operation, which is to run in a later turn."""
Rule = Callable[["Draft"], None]
"""A rule that is applied later, when a timer fires or an append was refused."""


class Draft:
    """Records and effects so far. ``now_ms`` is the time of the operation; relative times are added to it."""

    __slots__ = ("_effects", "_on_append_error", "now_ms", "records")

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self.records: list[GroupRecord] = []
        self._effects: list[Effect] = []
        self._on_append_error: Callable[[KafkaError, Draft], None] | None = None

    def record(self, record: GroupRecord) -> None:
        """Remember this."""
        self.records.append(record)

    def reply(self, to: Hashable, message: Any) -> None:
        """Answer a request, parked or not."""
        self._effects.append(Reply(to, message))

    def timer(self, key: Hashable, delay_ms: int, then: Rule) -> None:
        """Apply a rule after ``delay_ms``; a timer of the same key is replaced."""
        self._effects.append(SetTimer(key, self.now_ms + delay_ms, partial(_applied, then)))

    def soon(self, then: Rule) -> None:
        """Apply a rule when this is done, in a turn of its own."""
        self._effects.append(Notify(SOON, partial(_applied, then)))

    def cancel(self, key: Hashable) -> None:
        """Forget a timer."""
        self._effects.append(CancelTimer(key))

    def if_not_appended(self, rule: "Callable[[KafkaError, Draft], None]") -> None:
        """What to do instead, should the log refuse the records."""
        self._on_append_error = rule

    def replies(self) -> tuple[Reply, ...]:
        """The answers so far."""
        return tuple(effect for effect in self._effects if isinstance(effect, Reply))

    def outcome(self) -> Outcome:
        """The finished outcome."""
        refused = None if self._on_append_error is None else partial(_refused, self._on_append_error)
        return Outcome(tuple(self.records), tuple(self._effects), on_append_error=refused)


def _applied(rule: Rule, now_ms: int) -> Outcome:
    draft = Draft(now_ms)
    rule(draft)
    return draft.outcome()


def _refused(rule: Callable[[KafkaError, Draft], None], error: KafkaError, now_ms: int) -> Outcome:
    draft = Draft(now_ms)
    rule(error, draft)
    return draft.outcome()
