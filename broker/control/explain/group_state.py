"""What members of a group wait for now: owners that are gone, rebalances, pending offsets, offsets that are lost.

One sentence each, with the cause, since when, whose it is, when it ends by itself, and the command that ends it now.
`groups why` shows all of them; the hints of the report show those that keep another member from its records.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from broker.control.groups import assignment_of, pending_offsets
from broker.control.request import ControlRequest
from broker.control.share_groups import share_partitions
from broker.control.watched import Watched
from broker.coordination.group.classic.group import ClassicGroup
from broker.coordination.group.classic.rebalance import join_timer, member_timer, sync_timer
from broker.coordination.group.classic.states import State
from broker.coordination.group.events import LEFT, OFFSET_LOWERED, OFFSETS_GONE
from broker.coordination.group.group import Group, GroupType
from broker.coordination.group.machine import GroupMachine
from broker.coordination.group.modern.consumer.group import ConsumerGroup
from broker.coordination.group.modern.epochs import LEAVING_STATIC
from broker.coordination.group.modern.streams.group import StreamsGroup
from broker.coordination.group.modern.timers import rebalance_timer, session_timer
from broker.steering.journal.mentioned import few
from broker.steering.timelines.group_events import SENTENCES, GroupEvent, GroupHistory, is_departure
from control_api.answers.groups import PendingOffset
from control_api.times import local_time
from protocol.consumer_protocol import subscribed_topics

if TYPE_CHECKING:
    from broker.coordination.coordinators import GroupCoordinator


_DELAY = "group.initial.rebalance.delay.ms"
_SECOND_MS = 1000
_CLOSING = frozenset({"", "the consumer is being closed", "the consumer unsubscribed from all topics"})
"""Reasons of LeaveGroup with which a consumer leaves on its own (Kafka's ``AbstractCoordinator``)."""


class Sentence(NamedTuple):
    """A sentence, and whether it explains why a client that is still there gets no record."""

    text: str
    hint: bool = True


def who(event: GroupEvent) -> str:
    """Name a member with its client."""
    client = f" of client `{event.client_id}`" if event.client_id else ""
    return f"member {event.member_id!r}{client}"


def departure(event: GroupEvent) -> str:
    """Write by what a member is gone, with the time, such as ``at ... member 'm' of client `c` left the group``."""
    subject = who(event) if event.member_id else "the member"
    detail = f": {event.detail.rstrip('.')}" if event.detail else ""
    return f"at {local_time(event.at_ms)} {subject} {SENTENCES[event.event]}{detail}"


def happened(source: Watched, name: str, since_ms: int) -> Iterator[Sentence]:
    """Yield what has happened to a group since a time: departures of members, and losses of committed offsets."""
    history = source.group_timelines.of(name)
    yield from _departures(source, name, history, since_ms)
    for event in [each for each in history.events if each.event in _OFFSET_EVENTS and each.at_ms >= since_ms][-_MOST:]:
        at, detail = local_time(event.at_ms), f" ({event.detail})" if event.detail else ""
        if event.event == OFFSET_LOWERED.kind:
            places = [f"{topic}-{index} from {offset}" for topic, index, offset in event.places]
            by = f" of member {event.member_id!r}" if event.member_id else " without a member, as tools send it,"
            lowered = f"at {at} a commit{by} lowered the committed offset of {few(places)}; records are read again"
            yield Sentence(f"group {name}: {lowered}.")
        else:
            places = [f"{offset} of {topic}-{index}" for topic, index, offset in event.places]
            yield Sentence(
                f"group {name}: the committed offset {few(places)} {SENTENCES[event.event]} at {at}{detail}; without "
                "it, auto.offset.reset decides where consumers start, and latest skips the records in between."
            )


def _departures(source: Watched, name: str, history: GroupHistory, since_ms: int) -> Iterator[Sentence]:
    """Yield the latest departures of members that have not come back; a consumer that was closed is no hint."""
    latest: dict[str, GroupEvent] = {}
    for event in history.events:
        if event.member_id and event.at_ms >= since_ms and event.error is None:
            latest.pop(event.member_id, None)
            latest[event.member_id] = event
    for event in list(latest.values())[-_MOST:]:
        if not is_departure(event):
            continue
        sign = source.group_timelines.last_sign(name, event.member_id)
        connection = None if sign is None else source.journal.connection(sign.connection)
        if event.event == LEFT.kind and not event.detail and connection is not None and not connection.lost:
            still = "its client is still connected: it unsubscribed, or did not call poll within max.poll.interval.ms"
            yield Sentence(f"{departure(event)}; {still}.")
        else:
            yield Sentence(f"{departure(event)}.", event.event != LEFT.kind or event.detail not in _CLOSING)


_MOST = 4  # sentences about offsets: the newest; ours, more are not read
_OFFSET_EVENTS = frozenset(reason.kind for reason in (OFFSET_LOWERED, *OFFSETS_GONE))


class GroupState:
    """A group with its coordinator: what its members wait for now."""

    def __init__(self, request: ControlRequest, group: Group, coordinator: "GroupCoordinator") -> None:
        self._request, self._group, self._coordinator = request, group, coordinator
        self._cluster, self._id = request.cluster, str(group.group_id)

    def sentences(self) -> Iterator[Sentence]:
        """Yield everything that is known."""
        yield from self._pending()
        group = self._group
        if isinstance(group, ClassicGroup):
            yield from self._classic(group)
        if isinstance(group, ConsumerGroup):
            yield from self._reconciling(group)
        if isinstance(group, StreamsGroup):
            yield from self._streams(group)
        yield from self._owners_gone()
        yield from self._without_partitions()
        if group.type is GroupType.SHARE:
            yield from self._acquired()

    # --- offsets -----------------------------------------------------------------------------------------------------

    def _pending(self) -> Iterator[Sentence]:
        """Offsets in open transactions: OffsetFetch of stable offsets waits for them (KIP-447)."""
        by_producer: dict[int, list[PendingOffset]] = {}
        for each in pending_offsets(self._request, self._id, self._machine):
            by_producer.setdefault(each.producer_id, []).append(each)
        for offsets in by_producer.values():
            first, places = offsets[0], [f"{each.offset} of {each.topic}-{each.partition}" for each in offsets]
            since_ms = min(each.since_ms or 0 for each in offsets)
            yield Sentence(
                f"group {self._id}: the committed offset {few(places)} is pending since {local_time(since_ms)} in the "
                f"open transaction of {_transaction(first)}; until then OffsetFetch of stable offsets is answered "
                "UNSTABLE_OFFSET_COMMIT, and consumers of the group wait in silence."
            )

    # --- rebalances --------------------------------------------------------------------------------------------------

    def _classic(self, group: ClassicGroup) -> Iterator[Sentence]:
        if group.state is State.PREPARING_REBALANCE:
            until = self._until(join_timer(group))
            if group.previous_state is State.EMPTY:
                delay_ms = self._request.source.settings.int(_DELAY)
                yield Sentence(
                    f"group {self._id} was empty and waits {_seconds(delay_ms)}{until} for more members to join, "
                    f"with {len(group.members)} so far: {_DELAY}"
                )
                return
            missing = [member for member in group.members.values() if member.member_id not in group.awaiting_join]
            clients = few(sorted({member.client_id for member in missing}))
            names = f": {clients}" if clients else ""
            yield Sentence(
                f"group {self._id} is rebalancing and waits{until} for {len(missing)} of its members to rejoin{names}"
            )
        elif group.state is State.COMPLETING_REBALANCE:
            leader = None if group.leader is None else group.members.get(group.leader)
            by = "" if leader is None else f" of the leader, client `{leader.client_id}`,"
            yield Sentence(
                f"group {self._id} waits{self._until(sync_timer(group))} for the SyncGroup{by} with the assignment."
            )

    def _reconciling(self, group: ConsumerGroup) -> Iterator[Sentence]:
        """Partitions that a member has not given up yet, and a target that is not due yet (KIP-848)."""
        for member in group.members.values():
            if member.revoking:
                key = rebalance_timer(group.type, self._id, member.member_id)
                places = few(list(self._names(member.revoking)))
                yield Sentence(
                    f"group {self._id}: member {member.member_id!r} of client `{member.client_id}` still has to give "
                    f"up {places}{self._until(key)}: others get them after its next heartbeat."
                )
        yield from self._not_due(group, "consumer")

    def _not_due(self, group: ConsumerGroup | StreamsGroup, kind: str) -> Iterator[Sentence]:
        interval_ms = self._request.source.settings.int(f"group.{kind}.assignment.interval.ms")
        at_ms = group.assignment_timestamp_ms + interval_ms
        if not group.is_empty and group.epoch > group.assignment_epoch and at_ms > self._now_ms:
            yield Sentence(
                f"group {self._id} computes its next assignment at {local_time(at_ms)} at the earliest: "
                f"group.{kind}.assignment.interval.ms is {interval_ms}."
            )

    def _streams(self, group: StreamsGroup) -> Iterator[Sentence]:
        until = self._until(("streams-delay", self._id))
        if until:
            yield Sentence(
                f"group {self._id} was empty and waits{until} for more members: the initial rebalance delay."
            )
        if group.state_name == "NotReady" and group.topology is not None:
            missing = sorted(
                name
                for each in group.topology.subtopologies.values()
                for name in each.source_topics
                if name not in self._cluster.image.topics
            )
            what = f"source topics are missing: {few(missing)}" if missing else "internal topics are missing or differ"
            yield Sentence(f"group {self._id} assigns no task: {what}.")
        yield from self._not_due(group, "streams")

    # --- members -----------------------------------------------------------------------------------------------------

    def _owners_gone(self) -> Iterator[Sentence]:
        """Members whose connection is closed, or that left temporarily: their partitions wait for the session's end."""
        others = [member for member in self._members() if not self._is_gone(member)]
        for member in self._members():
            if not self._is_gone(member):
                continue
            places = few(assignment_of(self._request, self._group, member)) or "no partition"
            client = f"client `{member.client_id}`"
            if getattr(member, "epoch", 0) == LEAVING_STATIC:
                gone = f"{client} left temporarily as group.instance.id {member.instance_id!r}"
            else:
                sign = self._request.source.group_timelines.last_sign(self._id, member.member_id)
                connection = "" if sign is None else f" (connection {sign.connection})"
                gone = f"the connection of {client}{connection} is closed"
            yield Sentence(
                f"group {self._id}: {gone}, and member {member.member_id!r} still has {places}"
                f"{self._until(self._session(member.member_id), 'until its session ends at')}; `understudy ctl groups "
                f"evict {self._id} {member.member_id}` ends it now.",
                bool(others),
            )

    def _is_gone(self, member: Any) -> bool:
        if getattr(member, "epoch", 0) == LEAVING_STATIC:
            return True
        sign = self._request.source.group_timelines.last_sign(self._id, getattr(member, "member_id", ""))
        connection = None if sign is None else self._request.source.journal.connection(sign.connection)
        return connection is not None and connection.lost

    def _without_partitions(self) -> Iterator[Sentence]:
        """Members without a partition: their topics do not exist, or there are more members than partitions."""
        group = self._group
        if isinstance(group, ClassicGroup) and group.state is not State.STABLE:
            return
        members = list(self._members())
        for member in members:
            if assignment_of(self._request, group, member):
                continue
            if isinstance(group, StreamsGroup):
                yield from self._without_tasks(group, member.client_id)
                continue
            names = sorted(self._subscription(member))
            client = f"client `{member.client_id}`"
            missing = [name for name in names if name not in self._cluster.image.topics]
            count = sum(len(t.partitions) for n in names if (t := self._cluster.image.topics.get(n)) is not None)
            if getattr(member, "regex", "") and not names:
                yield Sentence(
                    f"group {self._id}: {client} has no partition: no topic matches its regular expression "
                    f"{member.regex!r}."
                )
            elif not names and isinstance(group, ClassicGroup) and self._wants_nothing(group, member):
                yield Sentence(
                    f"group {self._id}: {client} has no partition: it subscribes to no topic. If it has a regular "
                    "expression, the client itself compares it with the topics that exist, and none matches."
                )
            elif names and len(missing) == len(names):
                yield Sentence(f"group {self._id}: {client} has no partition: its topics do not exist: {few(missing)}.")
            elif names and count < len(members) and group.type is not GroupType.SHARE:
                yield Sentence(
                    f"group {self._id}: {client} has no partition: {len(members)} members share {count} partitions of "
                    f"{few(names)}."
                )

    def _without_tasks(self, group: StreamsGroup, client_id: str) -> Iterator[Sentence]:
        """A streams member without a task, though the topology is ready: others have them all, or still run them."""
        if group.state_name == "NotReady":
            return
        running = sum(len(tasks) for each in group.members.values() for tasks in each.assigned.active.values())
        revoking = [each for each in group.members.values() if each.revoking]
        tasks = "task" if running == 1 else "tasks"
        still = f", and {few([each.client_id for each in revoking])} still has to close some" if revoking else ""
        yield Sentence(
            f"group {self._id}: client `{client_id}` has no task: {len(group.members)} members share {running} active "
            f"{tasks}, one for each partition of a subtopology's topics{still}."
        )

    def _wants_nothing(self, group: ClassicGroup, member: Any) -> bool:
        """Whether the member's subscription can be read and names no topic."""
        if group.protocol_name is None or not group.is_consumer_type:
            return False
        topics = subscribed_topics(member.metadata(group.protocol_name))
        return topics is not None and not topics

    def _subscription(self, member: Any) -> Sequence[str]:
        group = self._group
        if isinstance(group, ClassicGroup):
            if group.protocol_name is None or not group.is_consumer_type:
                return ()
            return sorted(subscribed_topics(member.metadata(group.protocol_name)) or ())
        if isinstance(group, ConsumerGroup):
            return sorted(group.names_of(member))
        return sorted(getattr(member, "subscribed", ()))

    def _acquired(self) -> Iterator[Sentence]:
        """Records that members of a share group hold: no other member gets them until the lock ends (KIP-932)."""
        members = {member.member_id: member for member in self._members()}
        for share in share_partitions(self._cluster, self._id):
            for run in share.records:
                if run.state == "acquired" and run.lock_until_ms is not None:
                    to = "" if run.first_offset == run.last_offset else f" to {run.last_offset}"
                    holder = members.get(run.member_id or "")
                    client = "" if holder is None else f" of client `{holder.client_id}`"
                    yield Sentence(
                        f"share group {self._id}: offset {run.first_offset}{to} of {share.topic}-{share.partition} is "
                        f"acquired by member {run.member_id!r}{client} until {local_time(run.lock_until_ms)} "
                        "(share.record.lock.duration.ms), unless it is acknowledged.",
                        holder is None or self._is_gone(holder) or len(members) > 1,
                    )

    # --- parts -------------------------------------------------------------------------------------------------------

    @property
    def _machine(self) -> GroupMachine:
        return self._coordinator.machine

    @property
    def _now_ms(self) -> int:
        return self._cluster.clock.now_ms()

    def _members(self) -> list[Any]:
        members: Any = getattr(self._group, "members", {})
        return list(members.values())

    def _names(self, partitions: Mapping[UUID, Iterable[int]]) -> Iterator[str]:
        topics = self._cluster.image.topics_by_id
        return (f"{topics[each].name}-{at}" for each, indexes in partitions.items() if each in topics for at in indexes)

    def _session(self, member_id: str) -> Hashable:
        if isinstance(self._group, ClassicGroup):
            return member_timer(self._group, member_id)
        return session_timer(self._group.type, self._id, member_id)

    def _until(self, key: Hashable, prefix: str = "until") -> str:
        """Write until when a timer runs at the latest; empty if it does not run."""
        due_ms = self._coordinator.due_ms(key)
        return "" if due_ms is None else f" {prefix} {local_time(due_ms)}"


def _transaction(offset: PendingOffset) -> str:
    """Name a transaction, and when it ends by itself."""
    name = offset.transactional_id
    if name is None:
        return f"producer {offset.producer_id}, which no coordinator knows"
    if offset.until_ms is None:
        return f"transactional id {name}, which ends when its markers are written"
    return (
        f"transactional id {name}, which ends at the latest at {local_time(offset.until_ms)} by its timeout "
        f"(`understudy ctl transactions abort {name}` ends it now)"
    )


def _seconds(ms: int) -> str:
    return f"{ms} ms" if ms % _SECOND_MS else f"{ms // _SECOND_MS} s"
