"""Rules about sessions, and about load: requests that are repeated without a pause, or in vain."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from understudy.exam.level import Level
from understudy.exam.wire.problem import Problem, answered
from understudy.results import JournalEntry

REFUSED_PER_S: Final = 30
"""Refused requests of one API, with one error, within a second: with a back-off of 50 ms there are at most 20."""
IDLE_PER_S: Final = 60
"""Fetches without records, or Metadata, within a second: arbitrary, more than a client needs that polls every 50 ms."""
SECOND_US: Final = 1_000_000
FIRST_WITH_SESSIONS, FIRST_WITH_LEADER_EPOCH = 7, 9  # versions of Fetch
REPEATED: Final = 10  # arbitrary: fewer may be the attempts of one call
HASTY: Final = 10
"""Fetches in a row that wait for nothing and bring nothing: arbitrary, a few may follow a seek or a rebalance."""
FINAL: Final = frozenset(
    {
        "CLUSTER_AUTHORIZATION_FAILED",
        "FENCED_INSTANCE_ID",
        "INVALID_PRODUCER_EPOCH",
        "INVALID_RECORD",
        "INVALID_REQUIRED_ACKS",
        "INVALID_TRANSACTION_TIMEOUT",
        "INVALID_TXN_STATE",
        "MESSAGE_TOO_LARGE",
        "OFFSET_METADATA_TOO_LARGE",
        "POLICY_VIOLATION",
        "PRODUCER_FENCED",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        "TRANSACTION_ABORTABLE",
        "UNRELEASED_INSTANCE_ID",
    }
)
"""Errors that Kafka's own clients never answer by repeating the request."""
REMOVED: Final = frozenset({"UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"})
"""Errors after which a member joins again, and a transaction with its offsets can only be aborted."""


def fetch_sessions(entries: Sequence[JournalEntry]) -> Iterator[Problem]:
    """Return Fetch requests with a session that was not granted, or an epoch that is not the next one (KIP-227).

    Also those without the leader epoch, with which a broker that is behind or ahead would be noticed (KIP-320).
    """
    next_epochs: dict[tuple[int, int], int] = {}
    for entry in entries:
        if entry.api != "Fetch" or entry.version < FIRST_WITH_SESSIONS:
            continue
        session, epoch = entry.request.get("session_id", 0), entry.request.get("session_epoch", -1)
        known = next_epochs.get((entry.broker, session))
        epochs = [
            each["current_leader_epoch"] for topic in entry.request.get("topics", ()) for each in topic["partitions"]
        ]
        if entry.version >= FIRST_WITH_LEADER_EPOCH and epochs and max(epochs) < 0:
            yield Problem(entry, "no partition has a leader epoch", Level.MAY, habit=True)
        if session and epoch > 0:
            if known is None:
                yield Problem(entry, f"fetch session {session} was not granted by broker {entry.broker}")
            elif epoch != known:
                yield Problem(entry, f"epoch {epoch} of fetch session {session}, where {known} comes next")
        answer = entry.response or {}
        granted = answer.get("session_id", 0)
        if answered(entry) and granted and answer.get("error_code") == "NONE":  # a partition may have an error
            next_epochs[entry.broker, granted] = max(epoch, 0) + 1


def share_sessions(entries: Sequence[JournalEntry]) -> Iterator[Problem]:
    """Return share session epochs that are neither 0, -1 nor the next one (KIP-932)."""
    allowed: dict[tuple[int, str], set[int]] = {}
    for entry in entries:
        if entry.api not in {"ShareFetch", "ShareAcknowledge"}:
            continue
        place = entry.broker, entry.request.get("member_id") or ""
        epoch, known = entry.request.get("share_session_epoch", -1), allowed.get(place, {0})
        if epoch > 0 and epoch not in known:
            yield Problem(entry, f"share session epoch {epoch}, where {max(known)} comes next")
        if answered(entry) and (entry.response or {}).get("error_code") == "NONE":
            allowed[place] = {epoch + 1}
        else:  # a request that was refused for another reason may count
            allowed[place] = {*known, epoch + 1}


def load(entries: Sequence[JournalEntry]) -> Iterator[Problem]:
    """Return requests that are repeated without a back-off, or after an error that repeating does not change."""
    arrivals: dict[tuple[str, str], list[int]] = defaultdict(list)
    hasty = 0
    for entry in entries:
        idle = entry.api == "Metadata" or (entry.api in {"Fetch", "ShareFetch"} and not _has_records(entry))
        if entry.api in {"Fetch", "ShareFetch"}:
            hasty = hasty + 1 if idle and not entry.error and _waits_for_nothing(entry) else 0
            if hasty == HASTY:
                yield Problem(entry, f"sent {HASTY} times in a row without a wait for records", Level.MAY)
        if not entry.error and not idle:
            continue
        at = arrivals[entry.api, entry.error or ""]
        at.append(entry.ts_us)
        limit = REFUSED_PER_S if entry.error else IDLE_PER_S
        about = f"refused with {entry.error}" if entry.error else "without news"
        if len(at) > limit and at[-1] - at[-limit - 1] < SECOND_US:
            yield Problem(entry, f"sent more than {limit} times within a second, {about}", Level.MAY)
            at.clear()
        final = entry.error in FINAL or (entry.api == "TxnOffsetCommit" and entry.error in REMOVED)
        if final and len(at) == REPEATED:
            yield Problem(entry, f"sent {REPEATED} times, {about}, which does not change", Level.MAY)


def _waits_for_nothing(entry: JournalEntry) -> bool:
    """Return whether a broker answers a fetch at once; of share groups, it need not follow the numbers of bytes."""
    names = ("max_wait_ms", "min_bytes", "max_bytes") if entry.api == "Fetch" else ("max_wait_ms",)
    return any(entry.request.get(name, 1) <= 0 for name in names)


def _has_records(entry: JournalEntry) -> bool:
    return any(
        (partition.get("records") or {}).get("count")
        for topic in (entry.response or {}).get("responses", ())
        for partition in topic.get("partitions", ())
    )
