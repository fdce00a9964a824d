"""Mistakes in groups of the consumer and the share protocol that the simulator has to find, as those of planted.py."""

from typing import Any

from broker.coordination.group.modern.consumer.group import ConsumerGroup
from broker.coordination.group.modern.consumer.heartbeat import Heartbeats
from broker.coordination.group.modern.consumer.reconciliation import _next
from broker.coordination.group.modern.timers import MemberTimers
from broker.coordination.share_state.state import ShareState
from broker.partitions.share_partition.machine import acknowledge
from broker.partitions.share_partition.machine.states import InFlightState
from broker.partitions.share_partition.partition import SharePartition
from tests.simulator.planted import mistake


def _getter(prop: Any) -> Any:
    """The function behind a property."""
    return prop.fget


PLANTED_GROUPS = [
    # --- consumer groups
    mistake(
        "a partition is assigned before its owner has revoked it",
        _next,
        "goal.owner_epoch(topic_id, at) is None",
        "True",
    ),
    mistake("no member is asked to revoke partitions", _next, "if revoke and goal.owns_any(revoke):", "if False:"),
    mistake(
        "an unknown member may commit",
        ConsumerGroup.check_commit,
        "if member is None:",
        "if member is None and (member := next(iter(self.members.values()), None)) is None:",
    ),
    mistake(
        "a silent member of a consumer group stays in it", MemberTimers._fired, "self._expire(", "(lambda *_: None)("
    ),
    mistake(
        "heartbeats of a consumer group do not renew the session",
        Heartbeats.handle,
        "self._timers.arm_session(",
        "request.member_epoch or self._timers.arm_session(",
    ),
    mistake(
        "a member of a consumer group has too little time to revoke partitions",
        MemberTimers.limit_revocation,
        "member.rebalance_timeout_ms, ",
        "member.rebalance_timeout_ms // 6, ",
    ),
    # --- share groups
    mistake(
        "the delivery count stays at 1", InFlightState.acquire, "self.delivery_count + 1", "max(self.delivery_count, 1)"
    ),
    mistake(
        "an acquired record is acquired again",
        _getter(InFlightState.acquirable),
        "is RecordState.AVAILABLE",
        "is not None",
    ),
    mistake(
        "a rejected record is released",
        acknowledge._Verdicts._begin,
        "limit.then if rejected",
        "_STATES[AcknowledgeType.RELEASE] if rejected",
    ),
    mistake(
        "acknowledgements are not persisted", SharePartition.write, "self._persist(change.batches)", "self._persist(())"
    ),
    mistake(
        "a failed write of share state counts",
        SharePartition.write,
        "roll_back(self.inflight, change, self._cluster.clock.now_ms())",
        "commit(self.inflight, change)",
    ),
    mistake(
        "an update of share state drops earlier ones",
        ShareState.updated,
        "(*self.batches, *read_batches",
        "(*(), *read_batches",
    ),
]

SEEDS_OF_KINDS: dict[str, int] = {
    "an update of share state drops earlier ones": 900,
    "a partition is assigned before its owner has revoked it": 904,
    "no member is asked to revoke partitions": 904,
    "heartbeats of a consumer group do not renew the session": 903,
    "a member of a consumer group has too little time to revoke partitions": 96027,
    "the delivery count stays at 1": 900,
    "acknowledgements are not persisted": 900,
    "an acquired record is acquired again": 900,
    "a rejected record is released": 900,
    "followers keep records that the leader does not have": 801,
    "the high watermark does not wait for followers": 803,
    "acks=all does not wait for replicas": 803,
    "a coordinator does not wait for the high watermark": 70025,
    "a returning leader does not truncate its followers": 81000312,
}
"""Mistake of either list -> a seed whose run finds it with members of modern groups and followers that fall behind."""
