"""A group machine on a clock that the test moves: records are appended and replayed, timers fire when it advances.

As Kafka's own ``GroupMetadataManagerTestContext``. Every record goes through the codec on its way.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from broker.coordination.group.classic.group import ClassicGroup
from broker.coordination.group.group import Joiner
from broker.coordination.group.machine import GroupMachine
from broker.coordination.group.modern.topics import NoTopics, Topics
from broker.coordination.group.outcome_builder import GroupOutcome, InitializeShareState
from broker.coordination.outcome import CancelTimer, Outcome, Reply, RunAtOnce, RunLater, SetTimer, TransactionalAppend
from broker.coordination.runtime import kept
from broker.settings.releases import Behaviour, newest_behaves
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.group import GroupRecord, decode, encode
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.coordination.settings import FixedSettings

G = "g"
START_MS = 1_700_000_000_000
SETTINGS: dict[str, Any] = {
    "group.initial.rebalance.delay.ms": 0,
    "group.max.size": 2**31 - 1,
    "offset.metadata.max.bytes": 4096,
    "offsets.retention.minutes": 10080,
    "offsets.retention.check.interval.ms": 600_000,
    "group.consumer.assignment.interval.ms": 1_000,
    "group.consumer.heartbeat.interval.ms": 5_000,
    "group.consumer.max.size": 2**31 - 1,
    "group.consumer.regex.refresh.interval.ms": 600_000,
    "group.consumer.session.timeout.ms": 45_000,
    "group.share.assignment.interval.ms": 1_000,
    "group.share.heartbeat.interval.ms": 5_000,
    "group.share.initialize.retry.interval.ms": 30_000,
    "group.share.max.size": 200,
    "group.share.session.timeout.ms": 45_000,
    "group.consumer.migration.policy": "bidirectional",
    "group.consumer.assignors": ("uniform", "range"),
}


@dataclass(frozen=True)
class Marker:
    """A transaction marker in the log."""

    producer_id: int
    committed: bool


@dataclass(frozen=True)
class Logged:
    """A record in the log."""

    record: GroupRecord
    transaction: TransactionalAppend | None = None


@dataclass
class Answer:
    """What has come of a request: nothing yet, a message, or an error."""

    message: Any = None

    @property
    def parked(self) -> bool:
        """Whether the request still waits."""
        return self.message is None

    @property
    def code(self) -> ErrorCode:
        """The error that the request got."""
        if isinstance(self.message, KafkaError):
            return self.message.code
        assert not self.parked, "still parked"
        code: ErrorCode = self.message.error_code
        return code


@dataclass
class Context:
    """One shard: machine, log, timers and the time."""

    overrides: dict[str, Any] = field(default_factory=dict)
    log: list[Logged | Marker] = field(default_factory=list)
    now_ms: int = START_MS
    refuse_append: ErrorCode | None = None
    topics: Topics = field(default_factory=NoTopics)
    behaves: Callable[[Behaviour], bool] = newest_behaves
    rack_tags: tuple[str, ...] = ()
    followers_lag: bool = False

    def __post_init__(self) -> None:
        self.settings = FixedSettings({**SETTINGS, **self.overrides})
        self.machine = GroupMachine(
            self.settings, self._new_uuid, topics=self.topics, behaves=self.behaves, rack_tags=lambda _: self.rack_tags
        )
        self.timers: dict[Hashable, SetTimer] = {}
        self.soon: list[Callable[[int], Outcome[Any]]] = []
        self.initializations: list[InitializeShareState] = []
        """What the share coordinator was asked for and has not answered."""
        self.last: GroupOutcome = Outcome()
        self.applied: GroupOutcome = Outcome()
        self._uuids = 0
        self._states: dict[str, tuple[str, int]] = {}  # by group: the state and epoch that observers know
        for offset, entry in enumerate(self.log):
            self._replay(offset, entry)
        self.perform(self.machine.loaded(self.now_ms))

    def _new_uuid(self) -> UUID:
        self._uuids += 1
        return UUID(int=self._uuids)

    def reloaded(self, entries: int | None = None) -> "Context":
        """Another coordinator over the first entries of this log."""
        return Context(
            dict(self.settings.values), self.log[:entries], self.now_ms, topics=self.topics, behaves=self.behaves
        )

    # --- what the runtime does ---------------------------------------------------------------------------------------

    def ask(self, operation: Callable[[Answer], GroupOutcome]) -> Answer:
        """Run an operation; the result holds its reply."""
        answer = Answer()
        try:
            self.perform(operation(answer))
        except KafkaError as error:
            answer.message = error
        return answer

    def perform(self, outcome: GroupOutcome) -> None:
        """Append, replay, perform."""
        self.last = outcome
        if outcome.records and self.refuse_append is not None:
            error, self.refuse_append = KafkaError(self.refuse_append), None
            self._effects(kept(outcome))
            if outcome.on_append_error is None:
                raise error
            outcome = outcome.on_append_error(error, self.now_ms)
            self._states = {}  # soft state may have changed without its record
        self.applied = outcome
        if self.followers_lag:
            self.machine.replicating(outcome.records, outcome.transactional)
        for record in outcome.records:
            assert decode(*encode(record)) is not None
            self.log.append(Logged(record, outcome.transactional))
            self._replay(len(self.log) - 1, self.log[-1])
        self._check_changes(outcome)
        self._effects(outcome.effects)

    def _effects(self, effects: Iterable[Any]) -> None:
        for effect in effects:
            match effect:
                case Reply(to, message):
                    assert isinstance(to, Answer)
                    assert to.parked, "answered twice"
                    to.message = message
                case SetTimer(key):
                    self.timers[key] = effect
                case CancelTimer(key):
                    self.timers.pop(key, None)
                case RunLater(then):
                    self.soon.append(then)
                case RunAtOnce(then):
                    self.perform(then(self.now_ms))
                case InitializeShareState():
                    self.initializations.append(effect)

    def _check_changes(self, outcome: GroupOutcome) -> None:
        """Every change of a group's state is reported with its reason, and each begins where the last one ended."""
        for change in outcome.changes:
            known = self._states.get(change.name, ("", 0))[0]
            assert known in ("", change.state_before), change
            self._states[change.name] = (change.state_after, change.epoch_after)
        now = {name: (group.state_name, group.epoch) for name, group in self.machine.groups.items()}
        for name, state in self._states.items():
            assert state == now.get(name, state) or state[0] == now[name][0] == "Empty", name  # or of another kind
        self._states = now

    def _replay(self, offset: int, entry: Logged | Marker) -> None:
        if isinstance(entry, Marker):
            self.machine.replay_marker(entry.producer_id, 0, entry.committed)
        else:
            self.machine.replay(entry.record, offset, entry.transaction)

    def marker(self, producer_id: int, *, committed: bool) -> None:
        """A transaction of that producer ends."""
        self.log.append(Marker(producer_id, committed))
        self._replay(len(self.log) - 1, self.log[-1])

    def turn(self) -> None:
        """What was put off runs."""
        due, self.soon = self.soon, []
        for then in due:
            self.perform(then(self.now_ms))

    def advance(self, ms: int) -> None:
        """Let time pass; what is due runs in order, each at its own moment."""
        until_ms = self.now_ms + ms
        while due := [timer for timer in self.timers.values() if timer.at_ms <= until_ms]:
            timer = min(due, key=lambda each: each.at_ms)
            self.now_ms = max(self.now_ms, timer.at_ms)
            del self.timers[timer.key]
            self.perform(timer.then(self.now_ms))
        self.now_ms = until_ms

    @property
    def records(self) -> list[GroupRecord]:
        """All records so far."""
        return [entry.record for entry in self.log if isinstance(entry, Logged)]

    def due_in(self, *key: Hashable) -> int | None:
        """In how many ms that timer fires, ``None`` if it is not set."""
        return self.timers[key].at_ms - self.now_ms if key in self.timers else None

    def group(self, group_id: str = G) -> ClassicGroup:
        """A classic group."""
        group = self.machine.groups[group_id]
        assert isinstance(group, ClassicGroup)
        return group

    # --- requests ----------------------------------------------------------------------------------------------------

    def leave(self, *members: MemberIdentity, group_id: str = G) -> Any:
        """LeaveGroup; the response."""
        request = LeaveGroupRequest(group_id, members=members)
        return self.ask(lambda to: self.machine.leave(request, self.now_ms, to)).message

    def commit(
        self, topic: str, offsets: dict[int, int], generation: int = -1, member_id: str = "", **more: Any
    ) -> dict[int, ErrorCode] | ErrorCode:
        """OffsetCommit for one topic: codes by partition, or the code of the whole request."""
        metadata, topic_id = more.pop("metadata", {}), more.pop("topic_id", None)
        partitions = [OffsetCommitRequestPartition(p, o, metadata.get(p, "")) for p, o in offsets.items()]
        request = OffsetCommitRequest(
            more.pop("group_id", G),
            generation,
            member_id,
            group_instance_id=more.pop("instance_id", None),
            retention_time_ms=more.pop("retention_time_ms", -1),
            topics=[OffsetCommitRequestTopic(topic, partitions, topic_id)],
        )
        knows = more.pop("knows_stale_epochs", True)
        assert not more
        answer = self.ask(
            lambda to: self.machine.commit_offsets(request, self.now_ms, to, knows_stale_epochs=knows)
        ).message
        if isinstance(answer, KafkaError):
            return answer.code
        return {p.partition_index: p.error_code for p in answer.topics[0].partitions}

    def offset(self, topic: str, partition: int = 0, group_id: str = G, *, stable: bool = False) -> Any:
        """OffsetFetch of one partition: the offset, or the error code."""
        wanted = OffsetFetchRequestGroup(group_id, [OffsetFetchRequestTopics(topic, [partition])])
        partition_offset = self.machine.fetch_offsets(wanted, require_stable=stable).topics[0].partitions[0]
        return partition_offset.error_code or partition_offset.committed_offset


@dataclass
class Client:
    """A member's client. ``version`` is that of its JoinGroup."""

    context: Context
    protocols: Sequence[tuple[str, bytes]] = (("range", b"meta"),)
    instance_id: str | None = None
    session_ms: int = 10_000
    rebalance_ms: int = 60_000
    protocol_type: str = "consumer"
    version: int = 9
    group_id: str = G
    client_id: str = "client"
    member_id: str = ""
    generation: int = -1
    parked: Answer = field(default_factory=Answer)

    def ask(self) -> Answer:
        """Send JoinGroup once."""
        request = JoinGroupRequest(
            self.group_id,
            self.session_ms,
            self.member_id,
            self.protocol_type,
            [JoinGroupRequestProtocol(name, metadata) for name, metadata in self.protocols],
            self.rebalance_ms,
            self.instance_id,
        )
        joiner = Joiner(self.client_id, "/127.0.0.1", self.version >= 4, self.version >= 9)
        machine, now_ms = self.context.machine, self.context.now_ms
        self.parked = self.context.ask(lambda to: machine.join(request, joiner, now_ms, to))
        return self.parked

    def start(self) -> "Client":
        """Send JoinGroup, twice where the first only gives an id."""
        answer = self.ask()
        if not answer.parked and answer.code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.message.member_id
            self.ask()
        return self

    def joined(self) -> Any:
        """The join's answer, taken over."""
        assert self.parked.code is ErrorCode.NONE
        message = self.parked.message
        self.member_id, self.generation = message.member_id, message.generation_id
        return message

    def join(self) -> Any:
        """Send JoinGroup and take over its answer, which must be there."""
        return self.start().joined()

    def sync(self, assignments: dict[str, bytes] | None = None, **over: Any) -> Answer:
        """Send SyncGroup."""
        member_assignments = [
            SyncGroupRequestAssignment(member_id, raw) for member_id, raw in (assignments or {}).items()
        ]
        request = SyncGroupRequest(
            self.group_id,
            over.get("generation", self.generation),
            over.get("member_id", self.member_id),
            member_assignments,
            over.get("instance_id", self.instance_id),
            over.get("protocol_type", self.protocol_type),
            over.get("protocol_name"),
        )
        machine, now_ms = self.context.machine, self.context.now_ms
        return self.context.ask(lambda to: machine.sync(request, now_ms, to))

    def heartbeat(self, **over: Any) -> ErrorCode:
        """Send Heartbeat."""
        request = HeartbeatRequest(
            self.group_id,
            over.get("generation", self.generation),
            over.get("member_id", self.member_id),
            over.get("instance_id", self.instance_id),
        )
        machine, now_ms = self.context.machine, self.context.now_ms
        return self.context.ask(lambda to: machine.heartbeat(request, now_ms, to)).code

    def identity(self) -> MemberIdentity:
        """As LeaveGroup names it."""
        return MemberIdentity(self.member_id, self.instance_id)


def assembled(*clients: Client) -> tuple[Client, ...]:
    """All of them joined in one generation, led by the first one; none has synced (CompletingRebalance)."""
    first, *others = clients
    first.start()
    first.context.advance(first.context.settings.int("group.initial.rebalance.delay.ms"))
    first.joined()
    if others:
        assert first.sync({first.member_id: b""}).code is ErrorCode.NONE
        for client in others:
            client.start()
        first.start()
        for client in clients:
            client.joined()
    assert {client.generation for client in clients} == {first.generation}
    assert first.context.group(first.group_id).leader == first.member_id
    return clients


def stable(*clients: Client) -> tuple[Client, ...]:
    """All of them in one generation, with assignments a0, a1, ... (Stable)."""
    assembled(*clients)
    waiting = [client.sync() for client in clients[1:]]
    assignments = {client.member_id: b"a%d" % index for index, client in enumerate(clients)}
    assert clients[0].sync(assignments).code is ErrorCode.NONE
    assert [answer.message.assignment for answer in waiting] == [
        assignments[client.member_id] for client in clients[1:]
    ]
    return clients
