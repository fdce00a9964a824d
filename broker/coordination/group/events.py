"""Reasons for which members come and go, and committed offsets change other than by a commit; for observers only.

A reason's ``sentence`` continues "member 'm' of client `c` ..." or "the committed offset of t-0 ...".
"""

from broker.coordination.reasons import STEERING, Reason

_CLASSIC, _KIP, _STATIC = "GroupMetadataManager", "KIP-848", "KIP-345"

JOINED = Reason("member joined", "groups A.4", _CLASSIC, "joined the group")
LEFT = Reason("member left", "groups A.9", _CLASSIC, "left the group")
AWAY = Reason("static member left temporarily", "groups C.3", _STATIC, "left temporarily and keeps its partitions")
EVICTED = Reason("member evicted", STEERING, "", "was removed by the control plane (groups evict)")
SESSION_EXPIRED = Reason("session expired", "groups A.5 R9", _CLASSIC, "sent no heartbeat within its session timeout")
MISSED_REBALANCE = Reason(
    "missed the rebalance",
    "groups A.5 R7",
    _CLASSIC,
    "did not rejoin within the rebalance timeout (max.poll.interval.ms), so the rebalance was completed without it",
)
MISSED_SYNC = Reason(
    "sent no SyncGroup", "groups A.5 R8", _CLASSIC, "sent no SyncGroup within the rebalance timeout after it had joined"
)
NOT_REVOKED = Reason(
    "revoked too late", "groups C.5", _KIP, "did not give up its partitions within its rebalance timeout"
)
REPLACED = Reason(
    "static member replaced", "groups A.6", _STATIC, "was replaced by a member with the same group.instance.id"
)
ID_EXPIRED = Reason(
    "member id expired", "groups A.4 J3", "KIP-394", "did not join in time with the member id that it was given"
)
DID_NOT_FIT = Reason("member did not fit", "groups A.4 J2", _CLASSIC, "was removed because group.max.size was reached")
UNLOADED = Reason(
    "coordinator unloaded in a rebalance",
    "groups A.12",
    _CLASSIC,
    "was lost with the coordinator, which keeps only members of completed rebalances",
)

DEPARTURES = (
    LEFT, AWAY, EVICTED, SESSION_EXPIRED, MISSED_REBALANCE, MISSED_SYNC, NOT_REVOKED, REPLACED, ID_EXPIRED, DID_NOT_FIT,
)  # fmt: skip
"""The reasons for which a member is gone."""

_OFFSETS = "OffsetMetadataManager"
OFFSET_LOWERED = Reason("committed offset lowered", "groups B.1", _OFFSETS, "was lowered by a commit")
OFFSETS_EXPIRED = Reason("committed offsets expired", "groups B.3", _OFFSETS, "expired")
OFFSETS_DELETED = Reason("committed offsets deleted", "transactions E.4", "KIP-496", "was deleted by OffsetDelete")
GROUP_DELETED = Reason("group deleted", "groups A.13", "KIP-229", "was deleted with the group by DeleteGroups")
TOPIC_DELETED = Reason("topic deleted", "groups B.4", _OFFSETS, "was deleted with the topic")
GROUP_EXPIRED = Reason("group expired", "groups B.3", _OFFSETS, "expired with the group")

OFFSETS_GONE = (OFFSETS_EXPIRED, OFFSETS_DELETED, GROUP_DELETED, TOPIC_DELETED)
"""The reasons for which a committed offset is gone."""
