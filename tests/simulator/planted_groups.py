"""Mistakes in groups of the consumer and the share protocol that the simulator has to find, as those of planted.py."""

from typing import Any

from broker.coordination.group.consumer.group import ConsumerGroup
from broker.coordination.group.consumer.reconciliation import _next
from broker.coordination.group.consumer.timers import MemberTimers
from broker.coordination.share.state import ShareState
from broker.share.machine import acknowledge
from broker.share.machine.states import InFlightState
from broker.share.partition import SharePartition
from tests.simulator.planted import mistake


def _getter(found: Any) -> Any:
    """The function behind a property."""
    return found.fget


PLANTED_GROUPS = [
    # --- consumer groups
    mistake("a partition is given before it is free", _next, "goal.owner_epoch(topic_id, at) is None", "True"),
    mistake("nothing is asked to be given up", _next, "if revoke and goal.owns_any(revoke):", "if False:"),
    mistake(
        "who is no member may commit",
        ConsumerGroup.check_commit,
        "if member is None:",
        "if member is None and (member := next(iter(self.members.values()), None)) is None:",
    ),
    mistake("who is silent stays a member", MemberTimers._fired, "self._expire(", "(lambda *_: None)("),
    # --- share groups
    mistake(
        "a delivery is not counted", InFlightState.acquire, "self.delivery_count + 1", "max(self.delivery_count, 1)"
    ),
    mistake(
        "a locked record is acquired again",
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
        "acknowledgements are not written", SharePartition.write, "self._persist(change.batches)", "self._persist(())"
    ),
    mistake(
        "a failed write counts",
        SharePartition.write,
        "roll_back(self.inflight, change, self._cluster.clock.now_ms())",
        "commit(self.inflight, change)",
    ),
    mistake(
        "an update forgets the earlier ones", ShareState.updated, "(*self.batches, *read_batches", "(*(), *read_batches"
    ),
]

SEEDS_OF_KINDS: dict[str, int] = {
    "an update forgets the earlier ones": 900,
    "a partition is given before it is free": 904,
    "nothing is asked to be given up": 904,
    "a delivery is not counted": 900,
    "acknowledgements are not written": 900,
    "a locked record is acquired again": 900,
    "a rejected record is released": 900,
    "followers keep what the leader does not have": 801,
    "the high watermark waits for no replica": 803,
    "acks=all does not wait": 803,
    "a coordinator waits for no replica": 70025,
    "a leader that comes back cuts no follower": 81000312,
}
"""Mistake of either list -> a seed whose run finds it with members of modern groups and followers that fall behind."""
