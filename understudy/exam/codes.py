"""Which error codes a broker returns in which versions of an API: a client of an older one cannot know them."""

from collections.abc import Mapping
from typing import Final

NEWEST: Final = 99
"""No API has a version above."""
SINCE: Final[Mapping[tuple[str, str], int]] = {
    ("Produce", "TRANSACTION_ABORTABLE"): 11,
    ("Produce", "CONCURRENT_TRANSACTIONS"): 12,
    ("InitProducerId", "PRODUCER_FENCED"): 4,
    ("EndTxn", "PRODUCER_FENCED"): 2,
    ("EndTxn", "TRANSACTION_ABORTABLE"): 4,
    ("TxnOffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS"): 2,
    ("TxnOffsetCommit", "UNKNOWN_MEMBER_ID"): 3,
    ("TxnOffsetCommit", "ILLEGAL_GENERATION"): 3,
    ("TxnOffsetCommit", "FENCED_INSTANCE_ID"): 3,
    ("TxnOffsetCommit", "TRANSACTION_ABORTABLE"): 4,
    ("Fetch", "FETCH_SESSION_ID_NOT_FOUND"): 7,
    ("Fetch", "INVALID_FETCH_SESSION_EPOCH"): 7,
    ("Fetch", "FENCED_LEADER_EPOCH"): 9,
    ("Fetch", "UNKNOWN_LEADER_EPOCH"): 9,
    ("Fetch", "OFFSET_NOT_AVAILABLE"): 11,
    ("ListOffsets", "FENCED_LEADER_EPOCH"): 4,
    ("ListOffsets", "OFFSET_NOT_AVAILABLE"): 5,
    ("OffsetForLeaderEpoch", "FENCED_LEADER_EPOCH"): 2,
    ("OffsetForLeaderEpoch", "UNKNOWN_LEADER_EPOCH"): 2,
    ("JoinGroup", "FENCED_INSTANCE_ID"): 5,
    ("SyncGroup", "FENCED_INSTANCE_ID"): 3,
    ("OffsetCommit", "FENCED_INSTANCE_ID"): 7,
    ("OffsetCommit", "STALE_MEMBER_EPOCH"): 9,
    ("OffsetFetch", "UNSTABLE_OFFSET_COMMIT"): 7,
    ("OffsetFetch", "STALE_MEMBER_EPOCH"): 9,
    ("CreateTopics", "THROTTLING_QUOTA_EXCEEDED"): 6,
}
"""API and code -> the first version whose requests a broker answers with it; without a line: each version."""
BEFORE: Final[Mapping[tuple[str, str], str]] = {
    ("Produce", "TRANSACTION_ABORTABLE"): "INVALID_TXN_STATE",
    ("InitProducerId", "PRODUCER_FENCED"): "INVALID_PRODUCER_EPOCH",
    ("EndTxn", "PRODUCER_FENCED"): "INVALID_PRODUCER_EPOCH",
    ("TxnOffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS"): "COORDINATOR_NOT_AVAILABLE",
    ("TxnOffsetCommit", "TRANSACTION_ABORTABLE"): "INVALID_TXN_STATE",
    ("ListOffsets", "OFFSET_NOT_AVAILABLE"): "LEADER_NOT_AVAILABLE",
}
"""API and code -> what a broker answers in the same state in the versions before; without a line: no such state."""


def described(api: str, code: str) -> str:
    """Return a code, and what a broker answers in older versions of the API, for the title of a scenario."""
    since, before = SINCE.get((api, code)), BEFORE.get((api, code))
    return code if before is None else f"{code} (before version {since}, {before})"
