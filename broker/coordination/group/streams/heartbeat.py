"""StreamsGroupHeartbeat: joining, the topology, the session, the owned tasks and the assignment (groups E.3).

After Kafka's ``streamsGroupHeartbeat``. Everything is decided before anything is recorded: the updated member is kept
beside the unchanged group, and the records change both.
"""

from collections.abc import Hashable, Mapping
from functools import partial

from broker.coordination.group.classic.group import ClassicGroup
from broker.coordination.group.classic.states import State as ClassicState
from broker.coordination.group.modern.epochs import JOINING, target_is_due
from broker.coordination.group.modern.topics import metadata_hash
from broker.coordination.group.outcome_builder import OutcomeBuilder
from broker.coordination.group.rules import STREAMS_HEARTBEAT
from broker.coordination.group.streams.assignor import AssignableMember, Job, assign_sticky
from broker.coordination.group.streams.configuration import Configured, Status, configure
from broker.coordination.group.streams.context import STANDBY_REPLICAS, StreamsContext, epoch_record, report_change
from broker.coordination.group.streams.endpoints import partitions_by_endpoint
from broker.coordination.group.streams.group import StreamsGroup
from broker.coordination.group.streams.member import Member, target_record
from broker.coordination.group.streams.membership import check_size, member_of
from broker.coordination.group.streams.reconciliation import TargetState, reconciled
from broker.coordination.group.streams.states import state_of
from broker.coordination.group.streams.step import (
    Beat,
    BeatResult,
    Step,
    check_tasks,
    owned_tasks,
    task_ids,
    updated_member,
)
from broker.coordination.group.streams.task_offsets import NO_OFFSETS
from broker.coordination.group.streams.tasks import NO_TASKS, TaskSets
from broker.coordination.group.streams.timers import MemberTimers, delay_timer
from broker.coordination.group.streams.topology import Topology, recorded_topology
from broker.coordination.reasons import Refusal
from protocol.errors import ErrorCode
from protocol.java import HashMap
from protocol.log_records.streams_group import StreamsRecord, StreamsTargetEpoch
from protocol.messages.streams_group_heartbeat import (
    EndpointToPartitions,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from protocol.messages.streams_group_heartbeat import Topology as WireTopology

ACCEPTABLE_RECOVERY_LAG = 10_000
"""The default of ``group.streams.acceptable.recovery.lag`` (4.4); Kafka assigns no warm-up task yet."""
TASK_OFFSET_INTERVAL_MS = 60_000
"""The default of ``group.streams.task.offset.interval.ms`` (4.4)."""
_MISSING_TAGS = (
    "Missing required client tags for rack-aware standby assignment: [{}]. Configure them via 'client.tag.<tagKey>' in "
    "your Streams config."
)


class Heartbeats:
    """Decides heartbeats over the groups of one context."""

    def __init__(self, context: StreamsContext, timers: MemberTimers) -> None:
        self._context, self._timers = context, timers

    def beat(
        self, builder: OutcomeBuilder, request: StreamsGroupHeartbeatRequest, beat: Beat, reply_to: Hashable
    ) -> None:
        """For a member epoch of 0 and more: answers a :class:`BeatResult` (groups E.3).

        Raises:
            KafkaError: 25, 42, 69, 81, 110 or 130; nothing has changed.
        """
        group = self._group(builder, request)
        is_new = self._context.groups.get(group.group_id) is not group
        (before, replaced), owned = member_of(self._timers, builder, group, request), owned_tasks(request)
        after = updated_member(before, request, beat, newer=self._context.newer())
        if after.metadata != before.metadata:
            builder.record(after.metadata_record(group.group_id))
        topology = _topology(builder, group, request.topology)
        step = Step(group, before, after, owned, topology, _NOTHING, group.epoch, replaced)
        self._configure(builder, step, request)
        self._start_delay(builder, group)
        target_epoch, target = self._target(builder, step)
        step.after = reconciled(step.after, TargetState(target_epoch, target, owned, group.owners))
        if step.after.at != before.at:
            builder.record(step.after.current_record(group.group_id))
            self._timers.update_rebalance(builder, group.group_id, step.after)
        if builder.records:
            fits = step.validated == topology.epoch
            after_all = state_of(step.epoch, target_epoch, step.members().values(), fits=fits)
            report_change(builder, group, after_all, step.epoch)
        self._timers.arm_session(builder, group.group_id, after.member_id)
        if request.shutdown_application and group.shutdown_member is None:
            group.shutdown_member = after.member_id
        builder.reply(reply_to, self._result(step, request, beat, is_new=is_new))

    # --- groups E.3.1 and E.3.2: which group, which member -----------------------------------------------------------

    def _group(self, builder: OutcomeBuilder, request: StreamsGroupHeartbeatRequest) -> StreamsGroup:
        group_id = request.group_id
        if request.member_epoch != JOINING:
            return self._context.existing(group_id, STREAMS_HEARTBEAT.row(".1"), absent="Streams group {} not found.")
        found = self._context.groups.get(group_id)
        if isinstance(found, StreamsGroup):
            check_size(self._context, found, request, STREAMS_HEARTBEAT.row(".1"))
            return found
        if isinstance(found, ClassicGroup) and found.state is ClassicState.EMPTY:
            for record in found.tombstones():
                builder.record(record)
        elif found is not None:
            self._context.existing(group_id, STREAMS_HEARTBEAT.row(".1"))
        return StreamsGroup(group_id)

    # --- groups E.3.4 to E.3.8: the topology and the group's epoch ---------------------------------------------------

    def _configure(self, builder: OutcomeBuilder, step: Step, request: StreamsGroupHeartbeatRequest) -> None:
        """Check the topology against the topics, and bump the group's epoch if the assignment has to change."""
        group, version = step.group, self._context.topics.version
        if group.topology is not None and step.after.topology_epoch < group.topology.epoch:
            step.status(
                Status.STALE_TOPOLOGY,
                f"The member's topology epoch {step.after.topology_epoch} is behind the group's topology epoch "
                f"{group.topology.epoch}.",
            )
        bump, hashed = _counts(step, request.instance_id), group.metadata_hash
        configured = group.configured
        if group.topology is None or configured is None or group.checked_version != version:
            hashed = metadata_hash(step.topology.required_topics, self._context.topics)
            changed = hashed != group.metadata_hash
            bump |= changed
            if group.topology is None or configured is None or changed:
                configured = configure(step.topology, self._context.topics)
                group.configured = configured
            group.checked_version = version
        step.configured = configured
        step.validated = validated = step.topology.epoch if configured.is_ready else -1
        if configured.is_ready:
            check_tasks(configured, request)
        configs = self._context.assignment_configs(group.group_id)
        if bump or validated != group.validated_topology_epoch or configs != group.assignment_configs:
            step.epoch += 1
            builder.record(epoch_record(group, step.epoch, hashed, validated, configs))
        if request.task_offsets is not None or request.task_end_offsets is not None:
            known = group.task_offsets.get(step.after.member_id, NO_OFFSETS)
            group.task_offsets[step.after.member_id] = known.updated(request.task_offsets, request.task_end_offsets)

    # --- groups E.3.9 and E.3.10: the target -------------------------------------------------------------------------

    def _start_delay(self, builder: OutcomeBuilder, group: StreamsGroup) -> None:
        """Wait for further members of a group that was Empty, unless it waits already."""
        if not group.is_empty or self._is_delayed(builder, group):
            return
        delay_ms = self._context.settings.number(group.group_id, "streams.initial.rebalance.delay.ms")
        if delay_ms > 0:
            self._context.delays[group.group_id] = builder.now_ms + delay_ms
            builder.timer(delay_timer(group.group_id), delay_ms, partial(self._end_delay, group.group_id))

    def _is_delayed(self, builder: OutcomeBuilder, group: StreamsGroup) -> bool:
        return builder.now_ms < self._context.delays.get(group.group_id, builder.now_ms)

    def _end_delay(self, group_id: str, builder: OutcomeBuilder) -> None:
        self._context.delays.pop(group_id, None)
        group = self._context.find(group_id)
        if group is None or group.is_empty or group.configured is None or group.epoch <= group.assignment_epoch:
            return
        if self._is_due(builder, group):
            self._assign(builder, group, group.epoch, group.members, group.configured, group.targets)
            fits = group.topology is not None and group.topology.epoch == group.validated_topology_epoch
            after = state_of(group.epoch, group.epoch, group.members.values(), fits=fits)
            report_change(builder, group, after, group.epoch)

    def _is_due(self, builder: OutcomeBuilder, group: StreamsGroup) -> bool:
        interval_ms = self._context.settings.number(group.group_id, "streams.assignment.interval.ms")
        return target_is_due(group.assignment_timestamp_ms, interval_ms, builder.now_ms)

    def _target(self, builder: OutcomeBuilder, step: Step) -> tuple[int, TaskSets]:
        """The target's epoch after this request, and the member's target tasks."""
        group, member_id = step.group, step.after.member_id
        if self._is_delayed(builder, group):
            step.status(Status.ASSIGNMENT_DELAYED, "Assignment delayed due to the configured initial rebalance delay.")
            return group.assignment_epoch, NO_TASKS
        kept = step.target_of(member_id)
        if group.assignment_epoch >= step.epoch:
            return group.assignment_epoch, kept
        if not self._is_due(builder, group):
            step.status(Status.ASSIGNMENT_DELAYED, "Assignment delayed due to the configured assignment interval.")
            return group.assignment_epoch, kept
        members = step.members()
        before = {name: step.target_of(name) for name in members if name in group.targets or step.replaced is not None}
        targets = self._assign(builder, group, step.epoch, members, step.configured, before)
        return step.epoch, targets[member_id]

    def _assign(
        self,
        builder: OutcomeBuilder,
        group: StreamsGroup,
        epoch: int,
        members: HashMap[Member],
        configured: Configured,
        before: Mapping[str, TaskSets],
    ) -> dict[str, TaskSets]:
        """Compute and record the next target; without a ready topology no member has tasks."""
        subtopologies, configs = configured.subtopologies, self._context.assignment_configs(group.group_id)
        newer = self._context.newer()
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
                    int(configs[STANDBY_REPLICAS]),
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

    # --- the response ------------------------------------------------------------------------------------------------

    def _result(self, step: Step, request: StreamsGroupHeartbeatRequest, beat: Beat, *, is_new: bool) -> BeatResult:
        group, member, configured = step.group, step.after, step.configured
        newer = self._context.newer()
        response = StreamsGroupHeartbeatResponse(
            acceptable_recovery_lag=ACCEPTABLE_RECOVERY_LAG if beat.knows_recovery_lag else 0,
            task_offset_interval_ms=TASK_OFFSET_INTERVAL_MS if newer else 0,
            member_id=member.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=self._context.settings.number(group.group_id, "streams.heartbeat.interval.ms"),
            active_tasks=None,
            standby_tasks=None,
            warmup_tasks=None,
            partitions_by_user_endpoint=None,
        )
        changed = request.member_epoch == JOINING or step.before.assigned != member.assigned
        counted = changed and member.user_endpoint is not None
        if changed:
            tasks = member.assigned.undated
            response.active_tasks = task_ids(tasks.active)
            response.standby_tasks = task_ids(tasks.standby)
            response.warmup_tasks = task_ids(tasks.warmup)
            if counted:
                group.endpoint_epoch += 1
                if configured.subtopologies is None and not newer:  # EndpointToPartitionsManager expects them
                    raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, *STREAMS_HEARTBEAT.row(".5"))
        if newer and step.before.user_endpoint != member.user_endpoint and not counted:
            group.endpoint_epoch += 1
        if group.endpoint_epoch != request.endpoint_information_epoch:
            response.partitions_by_user_endpoint = self._endpoints(group, member, configured)
        if not is_new:
            response.endpoint_information_epoch = group.endpoint_epoch
        if configured.status is not None:
            step.status(configured.status, configured.detail)
        if group.shutdown_member is not None:
            step.status(
                Status.SHUTDOWN_APPLICATION,
                f"Streams group member {group.shutdown_member} encountered a fatal error and requested a shutdown for "
                "the entire application.",
            )
        missing = [tag for tag in self._context.settings.rack_tags(group.group_id) if tag not in _tag_keys(member)]
        if missing and beat.knows_recovery_lag:
            step.status(Status.MISSING_CLIENT_TAGS, _MISSING_TAGS.format(", ".join(missing)))
        response.status = step.statuses
        return BeatResult(response, configured.missing)

    def _endpoints(self, group: StreamsGroup, member: Member, configured: Configured) -> list[EndpointToPartitions]:
        """The partitions behind the endpoints of all members, this one as it becomes.

        Raises:
            KafkaError: UNKNOWN_SERVER_ERROR, as in 4.4, whose EndpointToPartitionsManager expects subtopologies.
        """
        others = [each for each in group.members.values() if each.member_id != member.member_id]
        listed = [each for each in (*others, member) if each.user_endpoint is not None]
        if listed and configured.subtopologies is None and self._context.newer():
            raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, *STREAMS_HEARTBEAT.row(".5"))
        return partitions_by_endpoint(listed, configured.subtopologies or {}, self._context.topics)


_NOTHING = Configured(-1, None)


def _tag_keys(member: Member) -> set[str]:
    return {each.key for each in member.client_tags}


def _counts(step: Step, instance_id: str | None) -> bool:
    """Whether a change of the member's metadata counts for the assignment.

    Not every change does if the request has an instance id; without one, also a static member's changes do.
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


def _topology(builder: OutcomeBuilder, group: StreamsGroup, given: WireTopology | None) -> Topology:
    """The group's topology after this request (groups E.3.4).

    Raises:
        KafkaError: INVALID_REQUEST for a topology that differs from the group's.
    """
    if given is None:
        assert group.topology is not None, "a group has had a topology since its first member"
        return group.topology
    names = {each.subtopology_id for each in given.subtopologies}
    if given.epoch < 0 or len(names) < len(given.subtopologies):
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, *STREAMS_HEARTBEAT.row(".4"))  # StreamsTopology throws
    value = recorded_topology(given)
    topology = Topology.of(value)
    if group.topology is None:
        builder.record(StreamsRecord.of(group.group_id, value))
        return topology
    if group.topology.epoch <= given.epoch and group.topology != topology:
        raise Refusal(
            ErrorCode.INVALID_REQUEST, *STREAMS_HEARTBEAT.row(".4"), "Topology updates are not supported yet."
        )
    return group.topology
