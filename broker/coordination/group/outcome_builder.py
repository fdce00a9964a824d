"""An outcome while it is being written.

One request may remove members, end a join phase and answer a dozen parked requests; the rules hand one builder from one
to the next, and each adds what follows from it.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from broker.coordination.outcome import CancelTimer, CommonEffect, Outcome, Reply, RunAtOnce, RunLater, SetTimer
from broker.coordination.reasons import Refusal, StateChange
from broker.timers import Rhythm
from protocol.errors import KafkaError
from protocol.log_records.group import GroupRecord


@dataclass(frozen=True, slots=True)
class InitializeShareState:
    """Have the share coordinator create the state of share partitions, then report to the machine (groups D.2).

    ``offsets`` are start offsets by topic id and partition, -1 for those that the group's settings decide.
    """

    group_id: str
    state_epoch: int
    offsets: Mapping[UUID, Mapping[int, int]]


GroupOutcome = Outcome[InitializeShareState]
Rule = Callable[["OutcomeBuilder"], None]
"""A rule that is applied later, when a timer fires or an append was refused."""


class OutcomeBuilder:
    """Records and effects so far. ``now_ms`` is the time of the operation; relative times are added to it."""

    __slots__ = ("_changes", "_effects", "_on_append_error", "_refusal", "divisible", "failed", "keeps_timers",
                 "now_ms", "records")  # fmt: skip

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self.records: list[GroupRecord] = []
        self._effects: list[CommonEffect | InitializeShareState] = []
        self._changes: list[StateChange] = []
        self._refusal: Refusal | None = None
        self.divisible = False
        """Whether the records may be appended as several batches."""
        self.failed = False
        """Whether the operation has failed, so that its reply waits for no record of others."""
        self.keeps_timers = False
        """Whether timers are set and cancelled even if the log refuses the records."""
        self._on_append_error: Callable[[KafkaError, OutcomeBuilder], None] | None = None

    def record(self, record: GroupRecord) -> None:
        """Remember this."""
        self.records.append(record)

    def reply(self, to: Hashable, message: Any, *, direct: bool = False) -> None:
        """Answer a request, parked or not; ``direct``: even if the log refuses the records."""
        self._effects.append(Reply(to, message, direct))

    def changed(self, change: StateChange) -> None:
        """Report a change of a group's state, with its reason. For people: it has no effect."""
        self._changes.append(change)

    def refused(self, refusal: Refusal) -> None:
        """Report the rule of a refusal that is a reply. For people: it has no effect."""
        self._refusal = refusal

    def refuse(self, to: Hashable, message: Any, refusal: Refusal, *, direct: bool = False) -> None:
        """Answer a request with a message that refuses it, and report the rule."""
        self.reply(to, message, direct=direct)
        self.refused(refusal)

    def timer(self, key: Hashable, delay_ms: int, then: Rule) -> None:
        """Apply a rule after ``delay_ms``; a timer of the same key is replaced."""
        self._effects.append(SetTimer(key, self.now_ms + delay_ms, partial(_applied, then)))

    def round(self, key: Hashable, rhythm: Rhythm, then: Rule) -> None:
        """Apply a rule after the rhythm's interval; a timer of the same key is replaced."""
        at_ms = self.now_ms + rhythm.interval_ms
        self._effects.append(SetTimer(key, at_ms, partial(_applied, then), rhythm))

    def soon(self, then: Rule) -> None:
        """Apply a rule when this is done, in a turn of its own."""
        self._effects.append(RunLater(partial(_applied, then)))

    def at_once(self, then: Rule) -> None:
        """Apply a rule when the records are replayed, before anything else is decided."""
        self._effects.append(RunAtOnce(partial(_applied, then)))

    def cancel(self, key: Hashable) -> None:
        """Forget a timer."""
        self._effects.append(CancelTimer(key))

    def effect(self, effect: InitializeShareState) -> None:
        """Have the runtime perform an effect of groups."""
        self._effects.append(effect)

    def reply_error(self, to: Hashable, error: KafkaError) -> None:
        """Answer with an error, of an operation that has had effects all the same."""
        self.reply(to, error)
        if isinstance(error, Refusal):
            self.refused(error)

    def if_not_appended(self, rule: "Callable[[KafkaError, OutcomeBuilder], None]") -> None:
        """What to do instead, should the log refuse the records."""
        self._on_append_error = rule

    def keep_timers(self, tried: "OutcomeBuilder") -> bool:
        """Set and cancel the timers of an operation that has failed; whether there are any.

        Kafka's timers are set at once, and not taken back with the records.
        """
        kept = tried.timers()
        self._effects += kept
        return bool(kept)

    def timers(self) -> tuple[SetTimer | CancelTimer, ...]:
        """The timers that are set and cancelled so far."""
        return tuple(effect for effect in self._effects if isinstance(effect, (SetTimer, CancelTimer)))

    def replies(self) -> tuple[Reply, ...]:
        """The answers so far."""
        return tuple(effect for effect in self._effects if isinstance(effect, Reply))

    def outcome(self) -> GroupOutcome:
        """The finished outcome."""
        refused = None if self._on_append_error is None else partial(_refused, self._on_append_error)
        return Outcome(
            tuple(self.records),
            tuple(self._effects),
            on_append_error=refused,
            divisible=self.divisible,
            failed=self.failed,
            keeps_timers=self.keeps_timers,
            changes=tuple(self._changes),
            refusal=self._refusal,
        )


def _applied(rule: Rule, now_ms: int) -> GroupOutcome:
    builder = OutcomeBuilder(now_ms)
    rule(builder)
    return builder.outcome()


def _refused(rule: Callable[[KafkaError, OutcomeBuilder], None], error: KafkaError, now_ms: int) -> GroupOutcome:
    builder = OutcomeBuilder(now_ms)
    rule(error, builder)
    return builder.outcome()
