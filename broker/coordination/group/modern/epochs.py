"""Checks of member epochs, and the time of the next target assignment (groups C.4 H5, H9, H10).

The rules are the same for consumer, share and streams groups (Kafka: ``ModernGroup``, ``GroupMetadataManager``).
"""

from broker.coordination.group.rules import EPOCH_CHECK, Rule
from broker.coordination.reasons import Refusal
from protocol.errors import ErrorCode

JOINING = 0
"""The member epoch of a heartbeat that joins."""
LEAVING, LEAVING_STATIC = -1, -2
"""Member epochs of heartbeats that leave: for good, or temporarily (static members)."""


def check_member_epoch(
    member_epoch: int,
    previous_epoch: int,
    epoch: int,
    *,
    owns_subset: bool,
    kind: str,
    rule: Rule = EPOCH_CHECK,
) -> None:
    """Raise FENCED_MEMBER_EPOCH unless a member at ``member_epoch`` may send a heartbeat with ``epoch``.

    If the last response was lost, the member may still be at its previous epoch, as long as it owns only assigned
    partitions. ``kind`` is "consumer", "share" or "streams", for the message; ``rule`` is the rule of the request.
    """
    if epoch in (JOINING, member_epoch):
        return
    if epoch > member_epoch:
        raise _fenced(kind, f"greater member epoch ({epoch})", member_epoch, rule)
    if epoch != previous_epoch or not owns_subset:
        raise _fenced(kind, f"smaller member epoch ({epoch})", member_epoch, rule)


def _fenced(kind: str, difference: str, member_epoch: int, rule: Rule) -> Refusal:
    return Refusal(
        ErrorCode.FENCED_MEMBER_EPOCH,
        *rule,
        f"The {kind} group member has a {difference} than the one known by the group "
        f"coordinator ({member_epoch}). The member must abandon all its partitions and rejoin.",
    )


def target_is_due(assignment_timestamp_ms: int, interval_ms: int, now_ms: int) -> bool:
    """Return whether the next target may be computed now: at most one in ``interval_ms`` (0: no limit)."""
    return assignment_timestamp_ms == 0 or interval_ms == 0 or now_ms >= assignment_timestamp_ms + interval_ms
