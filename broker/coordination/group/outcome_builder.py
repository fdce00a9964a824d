"""Builder of a group coordinator's outcomes.

One request may remove members, end a join phase and answer a dozen parked requests; the rules pass on one builder, and
each adds its records and effects.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol
from uuid import UUID

from broker.coordination.outcome import CancelTimer, CommonEffect, Outcome, Reply, RunAtOnce, RunLater, SetTimer
from broker.coordination.reasons import Reason, Refusal, StateChange
from broker.time.timers import Rhythm
from protocol.errors import KafkaError
from protocol.log_records.group import GroupRecord


@dataclass(frozen=True, slots=True)
class InitializeShareState:
    """Have the share coordinator create the state of share partitions, then report to the machine (groups D.2).

    ``offsets`` are start offsets by topic id and partition; -1 if the group's settings decide the start offset.
    """

    group_id: str
    state_epoch: int
    offsets: Mapping[UUID, Mapping[int, int]]


class _Group(Protocol):
    group_id: str

    @property
    def state_name(self) -> str: ...
    @property
    def epoch(self) -> int: ...


class _Member(Protocol):
    @property
    def member_id(self) -> str: ...
    @property
    def client_id(self) -> str: ...


GroupOutcome = Outcome[InitializeShareState]
Rule = Callable[["OutcomeBuilder"], None]
"""A rule that is applied later, when a timer fires or an append is refused."""


class OutcomeBuilder:
    """Records and effects so far. ``now_ms`` is the time of the operation; delays are relative to it."""

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
        """Whether the operation failed, so that its reply does not wait for the records of earlier operations."""
        self.keeps_timers = False
        """Whether timers are set and cancelled even if the log refuses the records."""
        self._on_append_error: Callable[[KafkaError, OutcomeBuilder], None] | None = None

    def record(self, record: GroupRecord) -> None:
        """Add a record."""
        self.records.append(record)

    def reply(self, to: Hashable, message: Any, *, direct: bool = False) -> None:
        """Answer a request, parked or not; ``direct``: immediately, even if the log refuses the records."""
        self._effects.append(Reply(to, message, direct))

    def changed(self, change: StateChange) -> None:
        """Report a change of a group's state and its reason to observers."""
        self._changes.append(change)

    def noted(self, group: _Group, reason: Reason, **details: Any) -> None:
        """Report something that leaves the group's state and epoch as they are; ``details`` as in ``StateChange``."""
        state, epoch = group.state_name, group.epoch
        self._changes.append(StateChange(group.group_id, reason, state, state, epoch, epoch, **details))

    def member(self, group: _Group, reason: Reason, member: _Member, detail: str = "") -> None:
        """Report to observers that a member came or went."""
        instance_id = getattr(member, "instance_id", None)
        self.noted(group, reason, member_id=member.member_id, instance_id=instance_id, client_id=member.client_id,
                   detail=detail)  # fmt: skip

    def refused(self, refusal: Refusal) -> None:
        """Report a refusal in a reply, with its rule, to observers."""
        self._refusal = refusal

    def refuse(self, to: Hashable, message: Any, refusal: Refusal, *, direct: bool = False) -> None:
        """Answer a request with an error response, and report its rule."""
        self.reply(to, message, direct=direct)
        self.refused(refusal)

    def timer(self, key: Hashable, delay_ms: int, then: Rule) -> None:
        """Apply a rule after ``delay_ms``; replaces a timer with the same key."""
        self._effects.append(SetTimer(key, self.now_ms + delay_ms, partial(_applied, then)))

    def round(self, key: Hashable, rhythm: Rhythm, then: Rule) -> None:
        """Apply a rule after the rhythm's interval; replaces a timer with the same key."""
        at_ms = self.now_ms + rhythm.interval_ms
        self._effects.append(SetTimer(key, at_ms, partial(_applied, then), rhythm))

    def soon(self, then: Rule) -> None:
        """Apply a rule after this operation, as a separate one in a later iteration of the event loop."""
        self._effects.append(RunLater(partial(_applied, then)))

    def at_once(self, then: Rule) -> None:
        """Apply a rule as soon as the records are replayed, before any other operation."""
        self._effects.append(RunAtOnce(partial(_applied, then)))

    def cancel(self, key: Hashable) -> None:
        """Cancel the timer with that key, if there is one."""
        self._effects.append(CancelTimer(key))

    def effect(self, effect: InitializeShareState) -> None:
        """Add an effect of the group coordinator's own."""
        self._effects.append(effect)

    def reply_error(self, to: Hashable, error: KafkaError) -> None:
        """Answer with an error although the operation has effects."""
        self.reply(to, error)
        if isinstance(error, Refusal):
            self.refused(error)

    def if_not_appended(self, rule: "Callable[[KafkaError, OutcomeBuilder], None]") -> None:
        """Apply this rule instead if the log refuses the records."""
        self._on_append_error = rule

    def keep_timers(self, tried: "OutcomeBuilder") -> bool:
        """Set and cancel the timers of a failed operation; return whether there are any.

        Kafka sets timers immediately, and does not roll them back with the records.
        """
        kept = tried.timers()
        self._effects += kept
        return bool(kept)

    def timers(self) -> tuple[SetTimer | CancelTimer, ...]:
        """Return the timers that are set and cancelled so far."""
        return tuple(effect for effect in self._effects if isinstance(effect, (SetTimer, CancelTimer)))

    def replies(self) -> tuple[Reply, ...]:
        """Return the replies so far."""
        return tuple(effect for effect in self._effects if isinstance(effect, Reply))

    def outcome(self) -> GroupOutcome:
        """Return the finished outcome."""
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
