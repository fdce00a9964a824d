"""Subscriptions by regular expression, which the coordinator resolves for its groups (groups C.9).

RE2's syntax, and the whole name has to match. A heartbeat asks for a refresh; that comes in a later turn, and members
hear of it at their next heartbeats, as in Kafka, where a thread of its own does it.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial

from broker.coordination.group.consumer.context import ConsumerContext, report_change
from broker.coordination.group.consumer.group import ConsumerGroup
from broker.coordination.group.consumer.member import Member
from broker.coordination.group.modern.topics import metadata_hash
from broker.coordination.group.outcome_builder import OutcomeBuilder
from protocol.errors import ErrorCode, KafkaError
from protocol.java import string_hash, table_capacity, table_order
from protocol.log_records.consumer_group import ConsumerKind, ConsumerRecord, GroupEpoch, RegularExpression
from protocol.regular_expressions import InvalidPattern, compiled

BATCH_MS = 10_000
"""New topics, and new expressions, are looked at no more often than that."""
NEVER_MS = -1

Visible = Callable[[str], bool]
"""Whether the client may see a topic (Describe)."""


class RegexChange(Enum):
    """What a heartbeat does to its member's regular expression."""

    NONE = "none"
    UNRESOLVED = "unresolved"
    RESOLVED = "resolved"


class Patterns:
    """The regular expressions of one shard's groups."""

    def __init__(self, context: ConsumerContext) -> None:
        self._context = context

    def changed(self, builder: OutcomeBuilder, group: ConsumerGroup, before: Member, after: Member) -> RegexChange:
        """Take note of another regular expression (groups C.9.2).

        Raises:
            KafkaError: INVALID_REGULAR_EXPRESSION, for one without subscribers so far.
        """
        old, new = before.regex, after.regex
        if old == new:
            return RegexChange.NONE
        if old and group.subscribers_of(old) == 1:
            builder.record(ConsumerRecord(ConsumerKind.REGULAR_EXPRESSION, group.group_id, old))
        if new and not group.subscribers_of(new):
            matcher(new)
            return RegexChange.UNRESOLVED
        return RegexChange.RESOLVED if not new or new in group.regexes else RegexChange.UNRESOLVED

    def refresh_if_due(
        self, builder: OutcomeBuilder, group: ConsumerGroup, used: Sequence[str], visible: Visible | None
    ) -> None:
        """Match the regular expressions that are used against the cluster's topics again (groups C.9.3)."""
        last_ms = _last_refresh_ms(group)
        if not used or _is_recent(last_ms, builder.now_ms):
            return
        version = max((found.version for found in group.regexes.values()), default=-1)
        interval_ms = self._context.settings.int("group.consumer.regex.refresh.interval.ms")
        if (
            len(used) != len(group.regexes)
            or self._context.topics.newest_version > version
            or builder.now_ms > last_ms + interval_ms
        ):
            asked = _in_order(used)
            builder.soon(partial(self._refresh, group.group_id, asked, builder.now_ms, visible))

    def _refresh(
        self, group_id: str, asked: Sequence[str], asked_ms: int, visible: Visible | None, builder: OutcomeBuilder
    ) -> None:
        """Store what the expressions match; the group's epoch moves where that has changed (groups C.9.4).

        Of several heartbeats that ask before the first refresh has run, that one is enough.
        """
        group, topics = self._context.find(group_id), self._context.topics
        if group is None or _is_recent(_last_refresh_ms(group), asked_ms):
            return
        used = [regex for regex in asked if group.subscribers_of(regex)]
        known = [name for name in topics.names() if visible is None or visible(name)]
        names, changed = group.names_besides(used), False
        for regex in used:
            matches = matcher(regex)
            found = tuple(sorted(name for name in known if matches(name)))
            before = group.regexes.get(regex)
            changed |= set(found) != set(() if before is None else before.topics or ())
            names.update(found)
            value = RegularExpression(found, topics.version, asked_ms)
            builder.record(ConsumerRecord.of(group_id, value, regex))
        new_hash = metadata_hash(names, topics)
        if changed or new_hash != group.metadata_hash:
            builder.record(ConsumerRecord.of(group_id, GroupEpoch(group.epoch + 1, new_hash)))
            group.checked = topics.version, group.epoch + 1
            report_change(builder, group, group.members.values(), group.epoch + 1, group.assignment_epoch)


def _in_order(regexes: Sequence[str]) -> list[str]:
    """Expressions in the order of the maps that ``TopicRegexResolver`` makes of the group's ones."""
    keys = list(regexes)
    for _ in ("topics", "resolved"):
        keys = table_order(keys, string_hash, table_capacity(len(regexes)))
    return keys


def _last_refresh_ms(group: ConsumerGroup) -> int:
    return max((found.timestamp_ms for found in group.regexes.values()), default=NEVER_MS)


def _is_recent(last_ms: int, now_ms: int) -> bool:
    """Whether the last refresh is too recent for another one."""
    return last_ms != NEVER_MS and now_ms <= last_ms + BATCH_MS


def matcher(pattern: str) -> Callable[[str], bool]:
    """A predicate: whether all of a topic's name matches.

    Raises:
        KafkaError: INVALID_REGULAR_EXPRESSION.
    """
    try:
        found = compiled(pattern)
    except InvalidPattern as error:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {error}.",
        ) from error
    return lambda text: found.fullmatch(text) is not None
