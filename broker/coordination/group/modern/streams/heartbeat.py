"""StreamsGroupHeartbeat: joins, topologies, sessions, owned tasks and assignments (groups E.3).

After Kafka's ``streamsGroupHeartbeat``. Except for soft state, nothing changes while a heartbeat is decided: the
updated member is a copy, and the replay of the records changes the group.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from broker.coordination.group.classic.group import ClassicGroup
from broker.coordination.group.classic.states import State as ClassicState
from broker.coordination.group.events import JOINED, REPLACED
from broker.coordination.group.modern.context import report_transition
from broker.coordination.group.modern.epochs import JOINING, LEAVING_STATIC, check_member_epoch, target_is_due
from broker.coordination.group.modern.streams.assignor import AssignableMember, Job, assign_sticky
from broker.coordination.group.modern.streams.configuration import Configured, Status, configure
from broker.coordination.group.modern.streams.context import (
    STANDBY_REPLICAS,
    StreamsContext,
    epoch_record,
)
from broker.coordination.group.modern.streams.endpoints import EndpointPartitions
from broker.coordination.group.modern.streams.group import StreamsGroup
from broker.coordination.group.modern.streams.member import Member, MemberState, target_record, tombstones
from broker.coordination.group.modern.streams.reconciliation import TargetState, reconciled
from broker.coordination.group.modern.streams.states import REASONS, State, state_of
from broker.coordination.group.modern.streams.step import (
    HeartbeatResult,
    Sender,
    Step,
    check_listed_once,
    check_tasks,
    owned_tasks,
    task_ids,
    updated_member,
)
from broker.coordination.group.modern.streams.tasks import NO_OFFSETS, NO_TASKS, Tasks, TaskSets
from broker.coordination.group.modern.streams.topology import Topology, recorded_topology
from broker.coordination.group.modern.timers import MemberTimers
from broker.coordination.group.modern.topics import metadata_hash
from broker.coordination.group.outcome_builder import OutcomeBuilder
from broker.coordination.group.rules import STREAMS_HEARTBEAT, Rule
from broker.coordination.reasons import Refusal
from protocol.errors import ErrorCode
from protocol.java import HashMap
from protocol.log_records.streams_group import StreamsRecord, StreamsTargetEpoch
from protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskIds,
)
from protocol.messages.streams_group_heartbeat import Topology as WireTopology

_MISSING_TAGS = (
    "Missing required client tags for rack-aware standby assignment: [{}]. Configure them via 'client.tag.<tagKey>' in "
    "your Streams config."
)


def delay_timer(group_id: str) -> tuple[str, str]:
    """Return the key of the timer that ends a group's initial rebalance delay."""
    return ("streams-delay", group_id)


class Heartbeats:
    """Decides heartbeats to the groups of one context."""

    def __init__(self, context: StreamsContext, timers: MemberTimers[StreamsGroup, Member]) -> None:
        self._context, self._timers = context, timers

    def handle(
        self, builder: OutcomeBuilder, request: StreamsGroupHeartbeatRequest, sender: Sender, reply_to: Hashable
    ) -> None:
        """Handle a heartbeat with a member epoch of at least 0: reply with a :class:`HeartbeatResult` (groups E.3).

        Raises:
            KafkaError: 25, 42, 69, 81, 110 or 130; no record was written.
        """
        group, newer = self._group(builder, request), self._context.newer()
        if newer:
            _relabel(group, request)
        before, replaced = member_of(builder, group, request)
        after = updated_member(before, request, sender, newer=newer)
        if replaced is None and after.member_id not in group.members:
            builder.member(group, JOINED, after)
        if after.metadata != before.metadata:
            builder.record(after.metadata_record(group.group_id))
        topology = _topology(builder, group, request.topology)
        step = Step(group, before, after, topology, _NOTHING, group.epoch, replaced)
        self._configure(builder, step, request)
        self._start_delay(builder, group)
        target_epoch, targets = self._target(builder, step)
        target = self._handed_out(step, target_epoch, targets) if newer else targets
        if not step.after.is_reconciled_to(target_epoch):
            check_listed_once(request)
            goal = TargetState(
                target_epoch, target.get(after.member_id, NO_TASKS), owned_tasks(request), group.owners, newer
            )
            step.after = reconciled(step.after, goal)
        if step.after.at != before.at:
            builder.record(step.after.current_record(group.group_id))
            revokes = step.after.state is MemberState.UNREVOKED_TASKS
            self._timers.update_rebalance(builder, group.group_id, step.after, revokes=revokes)
        if builder.records:
            fits = step.validated == topology.epoch
            after_all = state_of(step.epoch, target_epoch, step.members(), fits=fits)
            report_transition(builder, group, after_all, step.epoch, REASONS)
        self._timers.arm_session(builder, group.group_id, after.member_id)
        if request.shutdown_application and group.shutdown_member is None:
            group.shutdown_member = after.member_id
        builder.reply(reply_to, self._result(step, request, sender))

    # --- groups E.3.1 and E.3.2: find the group and the member -------------------------------------------------------

    def _group(self, builder: OutcomeBuilder, request: StreamsGroupHeartbeatRequest) -> StreamsGroup:
        group_id = request.group_id
        if request.member_epoch != JOINING:
            return self._context.existing(group_id, STREAMS_HEARTBEAT.row(".1"), absent="Streams group {} not found.")
        group = self._context.groups.get(group_id)
        if isinstance(group, StreamsGroup):
            check_size(self._context, group, request, STREAMS_HEARTBEAT.row(".1"))
            return group
        if isinstance(group, ClassicGroup) and group.state is ClassicState.EMPTY:
            for record in group.tombstones():
                builder.record(record)
        elif group is not None:
            self._context.existing(group_id, STREAMS_HEARTBEAT.row(".1"))
        return StreamsGroup(group_id)

    # --- groups E.3.4 to E.3.8: the topology and the group's epoch ---------------------------------------------------

    def _configure(self, builder: OutcomeBuilder, step: Step, request: StreamsGroupHeartbeatRequest) -> None:
        """Validate the topology against the topics, and bump the group epoch if the assignment has to change."""
        group, topics = step.group, self._context.topics
        if group.topology is not None and step.after.topology_epoch < group.topology.epoch:
            step.status(
                Status.STALE_TOPOLOGY,
                f"The member's topology epoch {step.after.topology_epoch} is behind the group's topology epoch "
                f"{group.topology.epoch}.",
            )
        bump, hashed = _counts(step, request.instance_id), group.metadata_hash
        configured, required = group.configuration.current, step.topology.required_topics
        if group.topology is None or configured is None or group.metadata_check.is_due(group.epoch, required, topics):
            hashed = metadata_hash(required, topics)
            changed = hashed != group.metadata_hash
            bump |= changed
            if group.topology is None or configured is None or changed:
                configured = configure(step.topology, topics)
                group.configuration.put(configured, self._context.writes.count)
        step.configured = configured
        step.validated = validated = step.topology.epoch if configured.is_ready else -1
        if configured.is_ready:
            check_tasks(configured, request)
        if request.task_offsets is not None or request.task_end_offsets is not None:
            known = group.task_offsets.get(step.after.member_id, NO_OFFSETS)
            group.task_offsets[step.after.member_id] = known.updated(request.task_offsets, request.task_end_offsets)
        step.configs = configs = self._context.assignment_configs(group.group_id)
        bump |= validated != group.validated_topology_epoch or configs != group.assignment_configs
        step.stays = not bump and group.state is State.STABLE and self._context.newer()
        step.refined = step.stays and group.targets.get(step.after.member_id, NO_TASKS) != step.after.assigned.undated
        if bump or step.refined:
            step.epoch += 1
            builder.record(epoch_record(group, step.epoch, hashed, validated, configs))
            group.metadata_check.done(step.epoch, required, topics)

    # --- groups E.3.9 and E.3.10: the target -------------------------------------------------------------------------

    def _start_delay(self, builder: OutcomeBuilder, group: StreamsGroup) -> None:
        """Start the initial rebalance delay of a group that was Empty, unless it is running."""
        if not group.is_empty or self._is_delayed(builder, group):
            return
        delay_ms = self._context.group_setting(group.group_id, "streams.initial.rebalance.delay.ms")
        if delay_ms > 0:
            self._context.delays[group.group_id] = builder.now_ms + delay_ms
            builder.timer(delay_timer(group.group_id), delay_ms, partial(self._end_delay, group.group_id))

    def _is_delayed(self, builder: OutcomeBuilder, group: StreamsGroup) -> bool:
        return builder.now_ms < self._context.delays.get(group.group_id, builder.now_ms)

    def _end_delay(self, group_id: str, builder: OutcomeBuilder) -> None:
        self._context.delays.pop(group_id, None)
        group = self._context.find(group_id)
        configured = None if group is None else group.configuration.current
        if group is None or group.is_empty or configured is None or group.epoch <= group.assignment_epoch:
            return
        if self._is_due(builder, group):
            members, configs = group.members.values(), group.assignment_configs  # as of the epoch, not the current ones
            self._assign(builder, group, group.epoch, members, configured, group.targets, configs)
            fits = group.topology is not None and group.topology.epoch == group.validated_topology_epoch
            after = state_of(group.epoch, group.epoch, group.members.values(), fits=fits)
            report_transition(builder, group, after, group.epoch, REASONS)

    def _is_due(self, builder: OutcomeBuilder, group: StreamsGroup) -> bool:
        interval_ms = self._context.group_setting(group.group_id, "streams.assignment.interval.ms")
        return target_is_due(group.assignment_timestamp_ms, interval_ms, builder.now_ms)

    def _target(self, builder: OutcomeBuilder, step: Step) -> tuple[int, Mapping[str, TaskSets]]:
        """Return the target's epoch after this request, and the members' target tasks."""
        group = step.group
        if self._is_delayed(builder, group):
            step.status(Status.ASSIGNMENT_DELAYED, "Assignment delayed due to the configured initial rebalance delay.")
            return group.assignment_epoch, {}
        kept = step.targets()
        if group.assignment_epoch >= step.epoch:
            return group.assignment_epoch, kept
        if step.refined and group.assignment_epoch >= group.epoch:
            same = StreamsTargetEpoch(step.epoch, group.assignment_timestamp_ms)
            builder.record(StreamsRecord.of(group.group_id, same))
            return step.epoch, kept
        if not self._is_due(builder, group):
            step.status(Status.ASSIGNMENT_DELAYED, "Assignment delayed due to the configured assignment interval.")
            return group.assignment_epoch, kept
        members, configured = step.members(), step.configured
        return step.epoch, self._assign(builder, group, step.epoch, members, configured, kept, step.configs)

    def _assign(
        self,
        builder: OutcomeBuilder,
        group: StreamsGroup,
        epoch: int,
        listed: Iterable[Member],
        configured: Configured,
        before: Mapping[str, TaskSets],
        configs: Mapping[str, str],
    ) -> dict[str, TaskSets]:
        """Compute and record the next target; without a ready topology no member has tasks."""
        members: HashMap[Member] = HashMap((each.member_id, each) for each in listed)
        subtopologies, newer = configured.subtopologies, self._context.newer()
        if configured.is_ready and subtopologies is not None:
            targets = assign_sticky(
                Job(
                    [
                        AssignableMember(
                            each.member_id,
                            each.process_id,
                            each.assigned.undated if newer else before.get(each.member_id, NO_TASKS),
                            group.task_offsets.get(each.member_id, NO_OFFSETS).by_task,
                        )
                        for each in members.values()
                    ],
                    {name: each.task_count for name, each in subtopologies.items()},
                    frozenset(name for name, each in subtopologies.items() if each.is_stateful),
                    int(configs.get(STANDBY_REPLICAS, "0")),
                    newer,
                )
            )
        else:
            targets = dict.fromkeys(members, NO_TASKS)
        for member_id in members:
            if before.get(member_id) != targets[member_id]:
                builder.record(target_record(group.group_id, member_id, targets[member_id]))
        builder.record(StreamsRecord.of(group.group_id, StreamsTargetEpoch(epoch, builder.now_ms)))
        return targets

    def _handed_out(self, step: Step, target_epoch: int, targets: Mapping[str, TaskSets]) -> Mapping[str, TaskSets]:
        """Return the target from which members get tasks (4.4): in a Stable group the target, else the cached one.

        Nothing is cached while warm-up tasks are disabled.
        """
        group = step.group
        kept = None if step.stays else group.refined.of_epoch(target_epoch)
        if kept is not None:
            return kept
        tasks = group.shared_targets() if step.stays else targets
        if self._context.group_setting(group.group_id, "streams.num.warmup.replicas") > 0:
            group.refined.keep(target_epoch, tasks)
        return tasks

    # --- the response ------------------------------------------------------------------------------------------------

    def _result(self, step: Step, request: StreamsGroupHeartbeatRequest, sender: Sender) -> HeartbeatResult:
        group, member, configured = step.group, step.after, step.configured
        newer = self._context.newer()
        setting = partial(self._context.group_setting, group.group_id)
        response = StreamsGroupHeartbeatResponse(
            acceptable_recovery_lag=setting("streams.acceptable.recovery.lag") if sender.knows_recovery_lag else 0,
            task_offset_interval_ms=setting("streams.task.offset.interval.ms") if newer else 0,
            member_id=member.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=setting("streams.heartbeat.interval.ms"),
            active_tasks=None,
            standby_tasks=None,
            warmup_tasks=None,
            partitions_by_user_endpoint=None,
        )
        changed = step.before.assigned != member.assigned
        lists_tasks = changed or request.member_epoch == JOINING
        if lists_tasks:
            tasks = member.assigned.undated
            response.active_tasks = task_ids(tasks.active)
            response.standby_tasks = task_ids(tasks.standby)
            response.warmup_tasks = task_ids(tasks.warmup)
        moved = newer and step.before.user_endpoint != member.user_endpoint
        if moved or ((changed if newer else lists_tasks) and member.user_endpoint is not None):
            group.endpoint_epoch += 1
        if group.endpoint_epoch != request.endpoint_information_epoch:
            endpoints = EndpointPartitions(configured, self._context.topics, newer=newer)
            response.partitions_by_user_endpoint = group.endpoints.listed(endpoints, step.others(), member)
        if group.group_id in self._context.groups:  # also a simple one, created by commits
            response.endpoint_information_epoch = group.endpoint_epoch
        if configured.status is not None:
            step.status(configured.status, configured.detail)
        if group.shutdown_member is not None:
            step.status(
                Status.SHUTDOWN_APPLICATION,
                f"Streams group member {group.shutdown_member} encountered a fatal error and requested a shutdown for "
                "the entire application.",
            )
        missing = [tag for tag in self._context.rack_tags(group.group_id) if tag not in _tag_keys(member)]
        if missing and sender.knows_recovery_lag:
            step.status(Status.MISSING_CLIENT_TAGS, _MISSING_TAGS.format(", ".join(missing)))
        response.status = step.statuses
        return HeartbeatResult(response, configured.missing, configured.requested)


_NOTHING = Configured(-1, None)


def _tag_keys(member: Member) -> set[str]:
    return {each.key for each in member.client_tags}


def _relabel(group: StreamsGroup, request: StreamsGroupHeartbeatRequest) -> None:
    """Move the cached target of the instance id's holder to the sender of the request.

    As in Kafka 4.4.0, also if the request is refused afterwards, such as a join before the holder has left.
    """
    held = None if request.instance_id is None else group.static_members.get(request.instance_id)
    if held is not None and held != request.member_id:
        group.refined.relabel(held, request.member_id)


def _counts(step: Step, instance_id: str | None) -> bool:
    """Return whether the change of the member's metadata requires a new assignment.

    If the request has an instance id, only some fields count; without one all do, also for a static member.
    """
    before, after = step.before, step.after
    if instance_id is None:
        return after.metadata != before.metadata
    return (before.topology_epoch, before.rack_id, before.client_tags, before.process_id) != (
        after.topology_epoch,
        after.rack_id,
        after.client_tags,
        after.process_id,
    )


def _topology(builder: OutcomeBuilder, group: StreamsGroup, wire_topology: WireTopology | None) -> Topology:
    """Return the group's topology after this request (groups E.3.4).

    Raises:
        KafkaError: INVALID_REQUEST if the topology differs from the group's.
    """
    if wire_topology is None:
        assert group.topology is not None, "a group has had a topology since its first member"
        return group.topology
    names = {each.subtopology_id for each in wire_topology.subtopologies}
    if wire_topology.epoch < 0 or len(names) < len(wire_topology.subtopologies):
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, *STREAMS_HEARTBEAT.row(".4"))  # StreamsTopology throws
    value = recorded_topology(wire_topology)
    topology = Topology.of(value)
    if group.topology is None:
        builder.record(StreamsRecord.of(group.group_id, value))
        return topology
    if group.topology.epoch <= wire_topology.epoch and group.topology != topology:
        raise Refusal(
            ErrorCode.INVALID_REQUEST, *STREAMS_HEARTBEAT.row(".4"), "Topology updates are not supported yet."
        )
    return group.topology


# --- groups E.3.1, E.3.2: dynamic and static members, replacements, epochs --------------------------------------------


def check_size(context: StreamsContext, group: StreamsGroup, request: StreamsGroupHeartbeatRequest, rule: Rule) -> None:
    """Raise GROUP_MAX_SIZE_REACHED for a join to a full group; since 4.4 not for a known member."""
    limit = context.settings.int("group.streams.max.size")
    known = request.member_id in group.members or request.instance_id in group.static_members
    if len(group.members) < limit or (context.newer() and known):
        return
    message = f"The streams group has reached its maximum capacity of {limit} members."
    raise Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, *rule, message)


def member_of(
    builder: OutcomeBuilder, group: StreamsGroup, request: StreamsGroupHeartbeatRequest
) -> tuple[Member, Member | None]:
    """Find or create the member and fence a wrong epoch; return it and the static member that it replaces, if any.

    Raises:
        KafkaError: 25, 82, 110 or 111.
    """
    epoch, instance_id = request.member_epoch, request.instance_id
    if instance_id is not None and (epoch != JOINING or instance_id in group.static_members):
        held = group.static_member(instance_id, None if epoch == JOINING else request.member_id)
        if epoch == JOINING:
            return _replaced(builder, group, held, request.member_id), held
        known: Member | None = held
    else:
        known = group.members.get(request.member_id) if epoch == JOINING else group.member(request.member_id)
    if known is None:
        return Member(request.member_id), None
    assigned = known.assigned.undated
    subset = (
        _are_within(request.active_tasks, assigned.active)
        and _are_within(request.standby_tasks, assigned.standby)
        and _are_within(request.warmup_tasks, assigned.warmup)
    )
    check_member_epoch(
        known.epoch, known.previous_epoch, epoch, owns_subset=subset, kind="streams", rule=group.member_rule
    )
    return known, None


def _are_within(owned: Sequence[TaskIds] | None, assigned: Tasks) -> bool:
    """Return whether the list is not null and each task in it is assigned; each subtopology must be assigned too."""
    return owned is not None and all(
        each.subtopology_id in assigned and assigned[each.subtopology_id].issuperset(each.partitions) for each in owned
    )


def _replaced(builder: OutcomeBuilder, group: StreamsGroup, held: Member, member_id: str) -> Member:
    """Replace the static member that holds the instance id, if it has left temporarily.

    The timers of the old member keep running, as in Kafka: it stays if the heartbeat fails, else the timers have no
    effect.
    """
    if held.epoch != LEAVING_STATIC:
        raise Refusal(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            *group.member_rule,
            f"Static member {member_id} with instance id {held.instance_id} cannot join the group because the "
            f"instance id is owned by {held.member_id} member.",
        )
    builder.member(group, REPLACED, held, f"now member {member_id}")
    heir = replace(held, member_id=member_id, epoch=0, previous_epoch=0)
    for record in tombstones(group.group_id, held.member_id):
        builder.record(record)
    builder.record(heir.metadata_record(group.group_id))
    builder.record(target_record(group.group_id, member_id, group.targets.get(held.member_id, NO_TASKS)))
    builder.record(heir.current_record(group.group_id))
    return heir
