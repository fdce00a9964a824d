"""Validation of a StreamsGroupHeartbeat, independent of the group (groups E.1.5 to E.1.11)."""

from functools import partial

from broker.coordination.group.modern.epochs import JOINING, LEAVING_STATIC
from broker.coordination.group.modern.validation import check_not_blank, require
from broker.coordination.group.rules import STREAMS_VALIDATION
from broker.coordination.reasons import Refusal
from protocol.errors import ErrorCode
from protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest

_require = partial(require, STREAMS_VALIDATION)


def check(request: StreamsGroupHeartbeatRequest, *, newer: bool = False) -> None:
    """Raise KafkaError, INVALID_REQUEST or STREAMS_INVALID_TOPOLOGY, with Kafka's message.

    ``newer``: as in 4.4, which accepts static members, task offsets and warm-up tasks.
    """
    epoch, topology = request.member_epoch, request.topology
    # What the release does not support is refused before the ids are checked (groups E.1.5).
    _check_unsupported(request, newer=newer)
    check_not_blank(
        STREAMS_VALIDATION,
        {
            "MemberId": request.member_id,
            "GroupId": request.group_id,
            "InstanceId": request.instance_id,
            "RackId": request.rack_id,
        },
    )
    tasks = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if epoch == JOINING:
        _require(request.rebalance_timeout_ms != -1, "RebalanceTimeoutMs must be provided in first request.")
        for name, owned in zip(("ActiveTasks", "StandbyTasks", "WarmupTasks"), tasks, strict=True):
            _require(owned is not None and not owned, f"{name} must be empty when (re-)joining.")
        _require(topology is not None, "Topology must be non-null when (re-)joining.")
        _check_changelogs(request)
    elif epoch == LEAVING_STATIC:
        _require(request.instance_id is not None, "InstanceId can't be null.")
    elif epoch < LEAVING_STATIC:
        _require(holds=False, message=f"MemberEpoch is {epoch}, but must be greater than or equal to {LEAVING_STATIC}.")
    present = [owned is not None for owned in tasks]
    _require(all(present) or not any(present), "If one task-type is non-null, all must be non-null.")
    _require(topology is None or epoch == JOINING, "Topology can only be provided when (re-)joining.")


def _check_unsupported(request: StreamsGroupHeartbeatRequest, *, newer: bool) -> None:
    """Refuse features that the release does not support yet (groups E.1.5, E.1.5b)."""
    subtopologies = () if request.topology is None else request.topology.subtopologies
    _require(newer or request.instance_id is None, "Static membership is not yet supported.")
    _require(newer or request.task_offsets is None, "TaskOffsets are not supported yet.")
    _require(newer or request.task_end_offsets is None, "TaskEndOffsets are not supported yet.")
    _require(newer or not request.warmup_tasks, "WarmupTasks are not supported yet.")
    _require(
        not any(each.source_topic_regex for each in subtopologies),
        "Regular expressions for source topics are not supported yet.",
    )


def _check_changelogs(request: StreamsGroupHeartbeatRequest) -> None:
    assert request.topology is not None
    for subtopology in request.topology.subtopologies:
        for changelog in subtopology.state_changelog_topics:
            if changelog.partitions != 0:
                raise Refusal(
                    ErrorCode.STREAMS_INVALID_TOPOLOGY,
                    *STREAMS_VALIDATION.row(".8"),
                    f"Changelog topic {changelog.name} must have an undefined partition count, but it is set to "
                    f"{changelog.partitions}.",
                )
