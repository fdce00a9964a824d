"""Subscriptions by regular expression, which the coordinator resolves (groups C.9).

Expressions have RE2's syntax and must match the whole topic name. A heartbeat triggers a refresh, which runs in a later
iteration of the event loop (in Kafka, on another thread); members see the result at their next heartbeats.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial

from broker.coordination.group.modern.consumer.context import ConsumerContext, report_change
from broker.coordination.group.modern.consumer.group import ConsumerGroup
from broker.coordination.group.modern.consumer.member import Member
from broker.coordination.group.modern.topics import metadata_hash
from broker.coordination.group.outcome_builder import OutcomeBuilder
from protocol.errors import ErrorCode, KafkaError
from protocol.java import string_hash, table_capacity, table_order
from protocol.log_records.consumer_group import ConsumerKind, ConsumerRecord, GroupEpoch, RegularExpression
from protocol.regular_expressions import InvalidPattern, compiled

BATCH_MS = 10_000
"""Shortest time between two refreshes (GroupMetadataManager.REGEX_BATCH_REFRESH_MIN_INTERVAL_MS, groups C.9.3)."""
NEVER_MS = -1

Visible = Callable[[str], bool]
"""Whether the client has Describe on a topic."""


class RegexChange(Enum):
    """Change of a member's regular expression by a heartbeat."""

    NONE = "none"
    UNRESOLVED = "unresolved"
    RESOLVED = "resolved"


class Patterns:
    """Resolves the regular expressions of one shard's groups."""

    def __init__(self, context: ConsumerContext) -> None:
        self._context = context

    def changed(self, builder: OutcomeBuilder, group: ConsumerGroup, before: Member, after: Member) -> RegexChange:
        """Handle a changed regular expression (groups C.9.2).

        Raises:
            KafkaError: INVALID_REGULAR_EXPRESSION; checked only for expressions without subscribers so far.
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
        """Trigger a refresh of the used regular expressions, if one is due (groups C.9.3)."""
        last_ms = _last_refresh_ms(group)
        if not used or _is_recent(last_ms, builder.now_ms):
            return
        version = max((resolved.version for resolved in group.regexes.values()), default=-1)
        interval_ms = self._context.settings.int("group.consumer.regex.refresh.interval.ms")
        if (
            len(used) != len(group.regexes)
            or self._context.topics.newest_version > version
            or builder.now_ms > last_ms + interval_ms
        ):
            regexes = _in_order(used)
            builder.soon(partial(self._refresh, group.group_id, regexes, builder.now_ms, visible))

    def _refresh(
        self, group_id: str, regexes: Sequence[str], requested_ms: int, visible: Visible | None, builder: OutcomeBuilder
    ) -> None:
        """Record the topics that the expressions match, and bump the group epoch if they changed (groups C.9.4).

        One refresh is enough for all heartbeats that trigger one before it runs.
        """
        group, topics = self._context.find(group_id), self._context.topics
        if group is None or _is_recent(_last_refresh_ms(group), requested_ms):
            return
        used = [regex for regex in regexes if group.subscribers_of(regex)]
        known = [name for name in topics.names() if visible is None or visible(name)]
        names, changed = group.names_besides(used), False
        for regex in used:
            matches = matcher(regex)
            matched = tuple(sorted(name for name in known if matches(name)))
            before = group.regexes.get(regex)
            changed |= set(matched) != set(() if before is None else before.topics or ())
            names.update(matched)
            value = RegularExpression(matched, topics.version, requested_ms)
            builder.record(ConsumerRecord.of(group_id, value, regex))
        new_hash = metadata_hash(names, topics)
        if changed or new_hash != group.metadata_hash:
            builder.record(ConsumerRecord.of(group_id, GroupEpoch(group.epoch + 1, new_hash)))
            group.checked = topics.version, group.epoch + 1
            report_change(builder, group, group.members.values(), group.epoch + 1, group.assignment_epoch)


def _in_order(regexes: Sequence[str]) -> list[str]:
    """Return expressions in the order of the maps in ``TopicRegexResolver``."""
    keys = list(regexes)
    for _ in ("topics", "resolved"):
        keys = table_order(keys, string_hash, table_capacity(len(regexes)))
    return keys


def _last_refresh_ms(group: ConsumerGroup) -> int:
    return max((resolved.timestamp_ms for resolved in group.regexes.values()), default=NEVER_MS)


def _is_recent(last_ms: int, now_ms: int) -> bool:
    """Return whether the last refresh is too recent for another one."""
    return last_ms != NEVER_MS and now_ms <= last_ms + BATCH_MS


def matcher(pattern: str) -> Callable[[str], bool]:
    """Return a predicate: whether a whole topic name matches the pattern.

    Raises:
        KafkaError: INVALID_REGULAR_EXPRESSION.
    """
    try:
        expression = compiled(pattern)
    except InvalidPattern as error:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {error}.",
        ) from error
    return lambda text: expression.fullmatch(text) is not None
