"""Members of streams groups on the machine's bench."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from broker.coordination.group.modern.streams import validation
from broker.coordination.group.modern.streams.group import StreamsGroup
from broker.coordination.group.modern.streams.member import Member
from broker.coordination.group.modern.streams.step import HeartbeatResult, Sender
from broker.coordination.group.modern.topics import Topics
from broker.coordination.group.outcome_builder import GroupOutcome
from broker.settings.releases import Behaviour, release
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.streams_group_heartbeat import (
    CopartitionGroup,
    KeyValue,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)
from tests.coordination.group.harness import Answer, Context, G

Tasks = dict[str, list[int]]
SETTINGS = {
    "group.streams.acceptable.recovery.lag": 10_000,
    "group.streams.assignment.interval.ms": 1_000,
    "group.streams.heartbeat.interval.ms": 5_000,
    "group.streams.initial.rebalance.delay.ms": 0,
    "group.streams.max.size": 2**31 - 1,
    "group.streams.num.standby.replicas": 0,
    "group.streams.num.warmup.replicas": 2,
    "group.streams.session.timeout.ms": 45_000,
    "group.streams.task.offset.interval.ms": 60_000,
}


def bench(topics: Topics, *, newer: bool = False, **settings: int) -> Context:
    """A shard of 4.3, or of 4.4, that assigns at once; an underscore in a setting's name replaces a dot."""
    changed = {f"group.streams.{name.replace('_', '.')}": value for name, value in settings.items()}
    played = release("4.4" if newer else "4.3")
    return Context({**SETTINGS, **changed}, topics=topics, behaves=played.has)


def info(name: str, partitions: int = 0, configs: Mapping[str, str] | None = None) -> TopicInfo:
    """An internal topic; 0 partitions are to be derived."""
    return TopicInfo(name, partitions, 0, [KeyValue(*pair) for pair in (configs or {}).items()])


def subtopology(
    name: str = "0",
    sources: Sequence[str] = (),
    *,
    changelogs: Sequence[TopicInfo] = (),
    sinks: Sequence[str] = (),
    repartitions: Sequence[TopicInfo] = (),
    copartitioned: Sequence[tuple[Sequence[int], Sequence[int]]] = (),
) -> Subtopology:
    """A subtopology; co-partition groups are indexes of its sources and of its repartition topics."""
    groups = [CopartitionGroup(own, (), others) for own, others in copartitioned]
    return Subtopology(name, list(sources), (), list(changelogs), list(sinks), list(repartitions), groups)


STATELESS = (subtopology("0", ["in"]),)


@dataclass
class StreamsMember:
    """A member; ``epoch`` and its tasks are those of the last response."""

    context: Context
    member_id: str = "m1"
    topology: Sequence[Subtopology] = STATELESS
    process_id: str = "p1"
    topology_epoch: int = 0
    rebalance_ms: int = 60_000
    epoch: int = 0
    active: Tasks = field(default_factory=dict)
    standby: Tasks = field(default_factory=dict)
    result: HeartbeatResult = field(init=False)

    def ask(self, epoch: int | None = None, **fields: Any) -> Answer:
        """One heartbeat; a field that is not given is null. Tasks may be pairs, where a subtopology comes twice."""
        for name in ("active_tasks", "standby_tasks", "warmup_tasks"):
            tasks = fields.get(name)
            pairs = tasks.items() if isinstance(tasks, Mapping) else tasks
            fields[name] = None if pairs is None else [TaskIds(*each) for each in pairs]
        for name in ("client_tags", "task_offsets", "task_end_offsets"):
            fields.setdefault(name, None)
        group_id = fields.pop("group_id", G)
        member_id = fields.pop("member_id", self.member_id)
        request = StreamsGroupHeartbeatRequest(group_id, member_id, self.epoch if epoch is None else epoch, **fields)
        context = self.context
        sender = Sender("client", "/127.0.0.1", context.behaves(Behaviour.STATIC_STREAMS_MEMBERS))

        def heartbeat(to: Answer) -> GroupOutcome:
            validation.check(request, newer=sender.knows_recovery_lag)  # as the handler does
            return context.machine.streams.heartbeat(request, sender, context.now_ms, to)

        return context.ask(heartbeat)

    def beat(self, epoch: int | None = None, **fields: Any) -> StreamsGroupHeartbeatResponse:
        """A heartbeat that succeeds; the member takes over what the response has."""
        result = self.ask(epoch, **fields).message
        assert isinstance(result, HeartbeatResult), result
        self.result, self.epoch = result, result.response.member_epoch
        if result.response.active_tasks is not None:
            self.active = _tasks(result.response.active_tasks)
            self.standby = _tasks(result.response.standby_tasks or ())
        return result.response

    def join(self, **fields: Any) -> StreamsGroupHeartbeatResponse:
        """The first heartbeat."""
        topology = Topology(self.topology_epoch, self.topology)
        first: dict[str, Any] = {
            "rebalance_timeout_ms": self.rebalance_ms,
            "topology": topology,
            "process_id": self.process_id,
            "active_tasks": {},
            "standby_tasks": {},
            "warmup_tasks": {},
        }
        return self.beat(0, **{**first, **fields})

    def refused(self, epoch: int | None = None, **fields: Any) -> ErrorCode:
        """The code of a heartbeat that is refused."""
        answer = self.ask(epoch, **fields).message
        assert isinstance(answer, KafkaError), answer
        return answer.code

    def refused_join(self, **fields: Any) -> ErrorCode:
        """The code of a first heartbeat that is refused."""
        try:
            self.join(**fields)
        except AssertionError as error:
            (refusal,) = error.args
            assert isinstance(refusal, KafkaError)
            return refusal.code
        raise AssertionError("the member has joined")

    def confirm(self) -> StreamsGroupHeartbeatResponse:
        """A heartbeat that reports the tasks that the member was given."""
        return self.beat(active_tasks=self.active, standby_tasks=self.standby, warmup_tasks={})

    @property
    def statuses(self) -> list[int]:
        """The codes of the last response's statuses."""
        return [each.status_code for each in self.result.response.status or ()]

    @property
    def details(self) -> list[str]:
        """The texts of the last response's statuses."""
        return [each.status_detail for each in self.result.response.status or ()]

    @property
    def seen(self) -> Member:
        """The member as the coordinator has it."""
        return group(self.context).member(self.member_id)


def _tasks(ids: Sequence[TaskIds]) -> Tasks:
    return {each.subtopology_id: list(each.partitions) for each in ids}


def group(context: Context) -> StreamsGroup:
    """The streams group."""
    streams_group = context.machine.groups[G]
    assert isinstance(streams_group, StreamsGroup)
    return streams_group


def settle(*members: StreamsMember, rounds: int = 20) -> None:
    """Heartbeats of all members, each reporting its tasks, until they are at one epoch; a second between the rounds."""
    for _ in range(rounds):
        for member in members:
            member.confirm()
        if group(members[0].context).state == "Stable":
            return
        members[0].context.advance(1_000)
    raise AssertionError("the group does not become stable")
