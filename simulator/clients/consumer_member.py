"""Members of consumer groups (KIP-848).

A member's heartbeat carries its epoch; the response has its next epoch and its assignment. It commits and revokes the
partitions that are no longer in the assignment, and confirms that in its next heartbeat; only then another member gets
them. When it is fenced or unknown, it drops all partitions and joins again with epoch 0.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from simulator.clients.client import GROUP, RETRIABLE, Client, Lost, first_error
from simulator.clients.consumer import HEARTBEAT_US, REBALANCE_TIMEOUT_MS, SESSION_TIMEOUT_MS, Fetcher
from simulator.history import Place

MODERN_GROUP = "modern"
_CHANNEL, _COMMITS = "heartbeats", "commits"
_LEAVE, _LEAVE_FOR_NOW = -1, -2
FENCED = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND})
STALE = frozenset({ErrorCode.STALE_MEMBER_EPOCH, *FENCED})


@dataclass(frozen=True, slots=True)
class Subscription:
    """Subscription of a member: names, or a regular expression. ``topics`` are the topics that match it."""

    topics: Sequence[str]
    regex: str | None = None
    assignor: str | None = None


class ConsumerMember(Client):
    """A member that reads its partitions and commits from time to time. ``instance`` is its group.instance.id."""

    def __init__(self, *arguments: Any, group: str, choices: Sequence[Subscription], instance: str | None) -> None:
        super().__init__(*arguments)
        self.group, self.instance = group, instance
        self._choices = choices
        self.subscription = self.chance.choice(choices)
        self.resetting = {_CHANNEL}  # a late heartbeat would revoke partitions that it has by then
        self.epoch = 0
        self.owned: frozenset[Place] = frozenset()
        self._target: frozenset[Place] = frozenset()
        self._reported: frozenset[Place] | None = None  # None: report everything in the next heartbeat
        self._heartbeat_at_us = 0
        self._missed_ms: int | None = None
        """When a heartbeat was sent whose response, perhaps with a revocation, was lost."""
        self._fetcher = Fetcher(self)
        self._grants: dict[Place, int] = {}
        # Of OffsetCommit and OffsetFetch: topics by name, or by id (KIP-848).
        self._version = self.chance.choice((9, 10))

    @property
    def _owner(self) -> str:
        return self.instance or self.name

    async def run(self) -> None:
        """Consume until the client is stopped, then leave; a static member sometimes leaves only temporarily."""
        while not self.stopping:
            if not await self._keep():
                await self.pause()
                continue
            for place in sorted(self.owned):
                if place in self._fetcher.positions and (records := await self._fetcher.fetch(place)):
                    self.history.saw(f"{self.name} {place[0]}-{place[1]} {self._grants[place]}", place, records)
            # Less than half of the rounds, so that a revocation finds records that were read and not committed.
            if self._fetcher.positions and self.chance.random() < 0.4:
                await self._commit(self._fetcher.positions)
            # Once in a run: a subscription that changes more often leaves no time to read.
            if self.chance.random() < 0.03 and not self.world.over:
                self._subscribe(self.chance.choice(self._choices))
            self.history.progress[self.name] += 1
            await self.pause(500)
        await self._leave()

    def _subscribe(self, subscription: Subscription) -> None:
        if subscription != self.subscription:
            self.note(f"   subscribes to {subscription.regex or ', '.join(subscription.topics)}")
            self.subscription, self._reported = subscription, None

    # --- membership --------------------------------------------------------------------------------------------------

    async def _keep(self) -> bool:
        """Send a heartbeat if one is due, and apply the response; return whether it is a member now."""
        due = self.now_us >= self._heartbeat_at_us or self._reported != self._held()
        if not due:
            return True
        history, sent_ms = self.history, self.world.elapsed_ms()
        self._heartbeat_at_us = self.now_us + HEARTBEAT_US
        history.ownership.keeps(self.group, self._owner, self.name, self.owned)
        reported = self._held()
        try:
            answer = await self._send_heartbeat()
        except Lost:
            self._reported = None
            if self._missed_ms is None:
                self._missed_ms = sent_ms
            return False
        if answer.error_code is not ErrorCode.NONE:
            return self._refused(answer.error_code)
        self._reported = reported
        self.epoch = answer.member_epoch
        target = await self._assigned(answer)
        if self.world.elapsed_ms() - sent_ms > SESSION_TIMEOUT_MS:
            self._forget()  # the topics' names took so long that its session is over, and others have its partitions
            return False
        if target is not None:
            self._target = target
            owned = ", ".join(f"{topic}-{index}" for topic, index in sorted(self._target))
            self.note(f"   is assigned {owned or 'nothing'} in epoch {self.epoch} of {self.group}")
        history.ownership.note_assignment(
            self.group, self._owner, self.name, self.epoch, self._target, self._timed_since(sent_ms),
            self.world.elapsed_ms(),
        )  # fmt: skip
        return await self._reconcile()

    def _timed_since(self, sent_ms: int) -> int:
        """Return from when on the member's timeouts may run, for an answered heartbeat that was sent at ``sent_ms``.

        If the response revokes partitions, so may a lost one have done: Kafka starts the rebalance timeout when it
        handles the heartbeat that changes the member (``maybeReconcile`` of GroupMetadataManager), whether or not its
        response arrives. Later heartbeats renew the session only. A full response that revokes nothing rules that out.
        """
        missed_ms, self._missed_ms = self._missed_ms, None
        return sent_ms if missed_ms is None or self.owned <= self._target else missed_ms

    def _held(self) -> frozenset[Place]:
        """Return the partitions that heartbeats report."""
        return self.owned

    async def _assigned(self, answer: Any) -> frozenset[Place] | None:
        """Return the assignment in a response; None if it is unchanged."""
        if answer.assignment is None:
            return None
        names = await self.topic_names(self.subscription.topics)
        return frozenset(
            (names[each.topic_id], index) for each in answer.assignment.topic_partitions for index in each.partitions
        )

    async def _send_heartbeat(self) -> Any:
        """Send a heartbeat; return the response. Raises Lost."""
        request = ConsumerGroupHeartbeatRequest(self.group, self.name, self.epoch, self.instance, topic_partitions=None)
        if self._reported is None or self.epoch == 0:
            wanted = self.subscription
            request.rebalance_timeout_ms = REBALANCE_TIMEOUT_MS
            request.subscribed_topic_names = [] if wanted.regex else list(wanted.topics)
            request.subscribed_topic_regex = wanted.regex or ""
            request.server_assignor = wanted.assignor
        if self._reported != self.owned or self.epoch == 0:
            request.topic_partitions = self._by_id(self.owned)
        return await self._ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request, f"epoch {self.epoch}", once=True)

    async def _send_leave(self, epoch: int) -> None:
        request = ConsumerGroupHeartbeatRequest(self.group, self.name, epoch, self.instance, topic_partitions=None)
        await self._ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request, "leaves")

    def _by_id(self, places: Collection[Place]) -> list[TopicPartitions]:
        """Return partitions by topic id, as requests have them; the ids of owned topics are known."""
        ids: dict[str, UUID] = {name: topic_id for topic_id, name in self.known_topics.items()}
        names = sorted({topic for topic, _ in places})
        return [TopicPartitions(ids[name], sorted(p for t, p in places if t == name)) for name in names]

    def _refused(self, code: ErrorCode) -> bool:
        if code is ErrorCode.UNRELEASED_INSTANCE_ID and self.epoch == 0:
            return False  # another instance has that id, or had it recently
        if code is ErrorCode.UNSUPPORTED_VERSION and self.world.features_change and not self.world.calm:
            self._forget()  # the cluster temporarily does not support such groups
            return False
        if code is not ErrorCode.FENCED_INSTANCE_ID and code not in FENCED:
            self.history.violate(f"{self.name}: a heartbeat of {self.group} got {code.name}")
        elif code is not ErrorCode.UNKNOWN_MEMBER_ID and self.world.calm:
            self.history.violate(
                f"{self.name}: a member of {self.group} got {code.name} although no fault is under way"
            )
        self._forget()
        return False

    def _forget(self) -> None:
        """Drop the membership and all partitions."""
        self.history.ownership.ends(self.group, self._owner, self.name)
        self.epoch, self.owned, self._target = 0, frozenset(), frozenset()
        self._reported = None
        self._fetcher.positions.clear()

    async def _reconcile(self) -> bool:
        revoked = self.owned - self._target
        if revoked:
            await self._commit({p: o for p, o in self._fetcher.positions.items() if p in revoked})
            if self.epoch == 0:
                return False
            for place in revoked:
                self._fetcher.positions.pop(place, None)
        self.owned = self._target
        missing = sorted(self.owned - self._fetcher.positions.keys())
        for place in sorted(self.owned - (self._reported or frozenset())):
            self._grants[place] = self._grants.get(place, 0) + 1
        return not missing or await self._load_positions(missing)

    async def _leave(self) -> None:
        if self.epoch == 0:
            return
        # Mostly a static member comes back (epoch -2); else its id must be free for others.
        back = self.instance is not None and self.chance.random() < 0.7
        self.history.ownership.ends(self.group, self._owner, self.name)
        try:
            await self._send_leave(_LEAVE_FOR_NOW if back else _LEAVE)
        except Lost:
            return

    async def _ask(self, key: ApiKey, version: int, request: Any, what: str, *, once: bool = False) -> Any:
        """Ask the coordinator. ``once``, for heartbeats: one that is refused is followed by a full one, as in Java."""
        return await self.ask_coordinator(
            GROUP, self.group, key, version, request, f"{self.group} {what}", channel=_CHANNEL, retry=False, once=once
        )

    # --- offsets -----------------------------------------------------------------------------------------------------

    async def _load_positions(self, places: Sequence[Place]) -> bool:
        """Start these at their committed offsets, or at the beginning; return whether that succeeded."""
        history, floor = self.history, self.history.floor(self.group)
        ids = {name: topic_id for topic_id, name in self.known_topics.items()}
        names = sorted({topic for topic, _ in places})
        topics = [OffsetFetchRequestTopics(n, sorted(p for t, p in places if t == n), ids[n]) for n in names]
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(self.group, topics, self.name, self.epoch)], require_stable=True
        )
        try:
            answer = await self._ask(ApiKey.OFFSET_FETCH, self._version, request, "offsets")
        except Lost:
            return False
        if (code := first_error(answer)) is not ErrorCode.NONE:
            self._expect_stale("OffsetFetch", code)
            return False
        committed = {
            (topic.name or self.known_topics[topic.topic_id], each.partition_index): each.committed_offset
            for group in answer.groups
            for topic in group.topics
            for each in topic.partitions
        }
        history.offsets_fetched(self.group, committed, {p: o for p, o in floor.items() if p in committed})
        self._fetcher.positions.update({place: max(committed.get(place, -1), 0) for place in places})
        return True

    async def _commit(self, offsets: Mapping[Place, int]) -> None:
        """Commit positions once; after a failure, the next commit of this or another member makes up for it."""
        history, offsets = self.history, dict(offsets)
        if not offsets:
            return
        ids = {name: topic_id for topic_id, name in self.known_topics.items()}
        topics = [
            OffsetCommitRequestTopic(
                name,
                [OffsetCommitRequestPartition(p, o) for (t, p), o in sorted(offsets.items()) if t == name],
                ids[name],
            )
            for name in sorted({topic for topic, _ in offsets})
        ]
        for place, offset in offsets.items():
            history.tried[self.group, place].add(offset)
        request = OffsetCommitRequest(self.group, self.epoch, self.name, -1, topics, self.instance)
        what = f"{self.group} " + ", ".join(f"{t}-{p}: {o}" for (t, p), o in sorted(offsets.items()))
        sent_ms, epoch = self.world.elapsed_ms(), self.epoch
        try:
            answer = await self.ask_coordinator(
                GROUP, self.group, ApiKey.OFFSET_COMMIT, self._version, request, what, channel=_COMMITS, retry=False
            )  # fmt: skip
        except Lost:
            history.note_doubtful(self.group, offsets)
            return
        if (code := first_error(answer)) is not ErrorCode.NONE:
            if epoch == self.epoch:
                self._expect_stale("OffsetCommit", code)
            return
        history.ownership.commits(self.group, self.name, offsets, sent_ms)
        history.note_committed({(self.group, place): offset for place, offset in offsets.items()})

    def _expect_stale(self, what: str, code: ErrorCode) -> None:
        if code not in STALE and code not in RETRIABLE:
            self.history.violate(f"{self.name}: {what} of a member of {self.group} got {code.name}")
        if code is not ErrorCode.NONE and self.world.calm and code not in (*RETRIABLE, ErrorCode.UNKNOWN_MEMBER_ID):
            self.history.violate(
                f"{self.name}: {what} of a member of {self.group} got {code.name} although no fault is under way"
            )
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND):
            self._forget()
