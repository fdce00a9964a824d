"""State of one heartbeat while it is decided, and reading of its request (groups E.3.2, E.3.3, E.3.6)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from broker.coordination.group.modern.epochs import JOINING
from broker.coordination.group.modern.streams.configuration import Configured, InternalTopic, Status
from broker.coordination.group.modern.streams.group import StreamsGroup
from broker.coordination.group.modern.streams.member import Member
from broker.coordination.group.modern.streams.tasks import Tasks, TaskSets, in_java_order
from broker.coordination.group.modern.streams.topology import Topology
from broker.coordination.group.rules import STREAMS_HEARTBEAT, STREAMS_RECONCILIATION
from broker.coordination.reasons import Refusal
from protocol.deferred import dataclass
from protocol.errors import ErrorCode
from protocol.java import utf16
from protocol.log_records.streams_group import Endpoint, KeyValue
from protocol.messages.streams_group_heartbeat import Status as WireStatus
from protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskIds,
)


@dataclass(frozen=True, slots=True)
class Sender:
    """The sender of a heartbeat; ``knows_recovery_lag``: whether its version has the fields of 4.4 (v1)."""

    client_id: str
    client_host: str
    knows_recovery_lag: bool = False


def no_recovery_lag(*, known: bool) -> int:
    """Return the acceptable recovery lag of a response without an assignment; ``known``: it is v1 (groups E.2)."""
    return -1 if known else 0


@dataclass(frozen=True, slots=True)
class HeartbeatResult:
    """The response, and the internal topics that the broker has to create for the group (groups E.5).

    The broker adds to ``requested`` the topics that it has tried to create.
    """

    response: StreamsGroupHeartbeatResponse
    missing: Sequence[InternalTopic] = ()
    requested: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Step:
    """One heartbeat while it is decided: the member before and after, and the group's topology, epoch and statuses.

    ``replaced`` is the static member that it replaces. ``stays``: the group is Stable and keeps its target (4.4).
    ``refined``: the target stays, but this member has other tasks than in the target. ``configs``: its settings.
    """

    group: StreamsGroup
    before: Member
    after: Member
    topology: Topology
    configured: Configured
    epoch: int
    replaced: Member | None = None
    stays: bool = False
    refined: bool = False
    validated: int = -1
    configs: dict[str, str] = field(default_factory=dict)
    statuses: list[WireStatus] = field(default_factory=list)

    def members(self) -> list[Member]:
        """Return all members after the request: this one in its place, or last if it is new."""
        mine = self.after.member_id
        gone = mine if self.replaced is None else self.replaced.member_id
        members = [each for each in self.group.members.values() if each.member_id == mine or each.member_id != gone]
        if mine not in self.group.members:
            return [*members, self.after]
        return [self.after if each.member_id == mine else each for each in members]

    def others(self) -> list[Member]:
        """Return all members except this one."""
        return [each for each in self.members() if each.member_id != self.after.member_id]

    def targets(self) -> Mapping[str, TaskSets]:
        """Return the targets before this heartbeat; a replacement inherits the static member's target."""
        if self.replaced is None or self.replaced.member_id not in self.group.targets:
            return self.group.shared_targets()
        targets = dict(self.group.targets)
        targets[self.after.member_id] = targets.pop(self.replaced.member_id)
        return targets

    def status(self, status: Status, detail: str) -> None:
        """Add a status to the response."""
        self.statuses.append(WireStatus(int(status), detail))


def updated_member(member: Member, request: StreamsGroupHeartbeatRequest, sender: Sender, *, newer: bool) -> Member:
    """Return the member with the metadata of this request; null fields change nothing.

    ``newer``: as in 4.4, where an instance id is kept and a join without an endpoint removes the endpoint.

    Raises:
        KafkaError: UNKNOWN_SERVER_ERROR for a duplicate client tag, as in Kafka, which collects them into a map.
    """
    timeout_ms, endpoint, tags = request.rebalance_timeout_ms, request.user_endpoint, request.client_tags
    if len({each.key for each in tags or ()}) < len(tags or ()):
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, *STREAMS_HEARTBEAT.row(".3"))
    kept = None if newer and request.member_epoch == JOINING else member.user_endpoint
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        topology_epoch=member.topology_epoch if request.topology is None else request.topology.epoch,
        client_id=sender.client_id,
        client_host=sender.client_host,
        process_id=member.process_id if request.process_id is None else request.process_id,
        user_endpoint=kept if endpoint is None else Endpoint(endpoint.host, endpoint.port),
        client_tags=member.client_tags
        if tags is None
        else tuple(KeyValue(each.key, each.value) for each in sorted(tags, key=lambda tag: utf16(tag.key))),
    )


def check_listed_once(request: StreamsGroupHeartbeatRequest) -> None:
    """Raise UNKNOWN_SERVER_ERROR for a duplicate subtopology in a list of owned tasks.

    Kafka collects the tasks into maps, but only for a member that has not reached the target.
    """
    for tasks in (request.active_tasks, request.standby_tasks, request.warmup_tasks):
        if len({each.subtopology_id for each in tasks or ()}) < len(tasks or ()):
            raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, *STREAMS_RECONCILIATION)


def owned_tasks(request: StreamsGroupHeartbeatRequest) -> TaskSets | None:
    """Return the owned tasks in a heartbeat, ``None`` unless it lists all three roles."""
    active, standby, warmup = request.active_tasks, request.standby_tasks, request.warmup_tasks
    if active is None or standby is None or warmup is None:
        return None
    return TaskSets(_tasks(active), _tasks(standby), _tasks(warmup))


def _tasks(ids: Iterable[TaskIds]) -> Tasks:
    return {each.subtopology_id: frozenset(each.partitions) for each in ids if each.partitions}


def task_ids(tasks: Tasks) -> list[TaskIds]:
    """Return tasks in the form of a response."""
    return [TaskIds(name, sorted(partitions)) for name, partitions in in_java_order(tasks)]


def check_tasks(configured: Configured, request: StreamsGroupHeartbeatRequest) -> None:
    """Raise INVALID_REQUEST for an owned task that does not exist (groups E.3.6)."""
    subtopologies = configured.subtopologies or {}
    for ids in (request.active_tasks, request.standby_tasks, request.warmup_tasks):
        for each in ids or ():
            known = subtopologies.get(each.subtopology_id)
            if known is None:
                raise _no_task(f"Subtopology {each.subtopology_id} does not exist in the topology.")
            for partition in each.partitions:
                if not 0 <= partition < known.task_count:
                    raise _no_task(
                        f"Task {partition} for subtopology {each.subtopology_id} is invalid. Number of tasks for this "
                        f"subtopology: {known.task_count}"
                    )


def _no_task(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, *STREAMS_HEARTBEAT.row(".6"), message)
