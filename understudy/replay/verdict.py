"""What became of a request: answered, refused, cut, late. And what of it a played-back cluster does by itself."""

from typing import Any, Final, NamedTuple

from understudy.replay.journal import Line

BY_ITSELF: Final = frozenset({"MEMBER_ID_REQUIRED", "DUPLICATE_SEQUENCE_NUMBER"})
"""Errors that belong to the protocol: Understudy answers them where Kafka does."""
REBALANCES: Final = frozenset({"REBALANCE_IN_PROGRESS"})
"""Errors that follow from what other members of a group do."""
AFTER_APPEND: Final = frozenset({"REQUEST_TIMED_OUT", "NOT_ENOUGH_REPLICAS_AFTER_APPEND"})
"""Errors of requests that were done all the same."""
NEVER_PLAYED: Final = frozenset({"SaslHandshake", "SaslAuthenticate"})
_BY_THE_CLIENT: Final = ("the client hung up", "the client left")
_AT_THE_END: Final = "the broker stopped"
_LONG_POLLS: Final = frozenset({"Fetch", "ShareFetch", "JoinGroup", "SyncGroup"})
CLOSE, DROP, ENDED = "close", "drop", "ended"


class Verdict(NamedTuple):
    """What became of a request, or of one item of it. ``cut``: how it was left without an answer."""

    code: str | None = None
    cut: str | None = None
    late_ms: int = 0
    throttle_ms: int = 0

    @property
    def stops(self) -> bool:
        """Whether its fault keeps the request from the broker, and from later faults."""
        return self.cut is not None or (self.code is not None and self.code not in AFTER_APPEND)

    @property
    def effect(self) -> dict[str, Any]:
        """The arguments of a fault that does the same. Not of one that is only late or throttled."""
        if self.cut == DROP:
            return {"drop": True}
        if self.cut is not None:
            return {"disconnect": "close"}
        if self.code in AFTER_APPEND:
            return {"apply_then": {"error": self.code}}
        return {"error": self.code}


def cut_of(line: Line) -> str | None:
    """How a request was left without an answer by others than its client; ENDED: when the process stopped."""
    outcome = line["outcome"]
    if outcome == "never answered":
        return DROP
    if outcome == "failed":
        return CLOSE
    if not outcome.startswith("closed: "):
        return None
    reason = outcome.removeprefix("closed: ")
    if reason.startswith(_BY_THE_CLIENT):
        return None
    return ENDED if reason == _AT_THE_END else CLOSE


def ended_us(line: Line) -> int:
    """When a request was answered, or given up."""
    return int(line["ts_us"]) + max(int(line["duration_us"]), 0)


def is_gone(line: Line) -> bool:
    """Whether its client went away before the answer: nothing is known of it."""
    return line["response"] is None and line["outcome"].removeprefix("closed: ").startswith(_BY_THE_CLIENT)


def late_of(line: Line, threshold_ms: int) -> int:
    """By how much a request took longer than its API may; 0: not by so much."""
    took_ms = line["duration_us"] // 1000
    if line["api"] in _LONG_POLLS:
        request = line["request"] or {}
        if "max_wait_ms" not in request:
            return 0  # a rebalance takes as long as its members do
        took_ms -= request["max_wait_ms"]
    return int(took_ms) if took_ms >= threshold_ms else 0


def throttle_of(line: Line) -> int:
    """For how long a response throttles its client."""
    return int((line["response"] or {}).get("throttle_time_ms") or 0)
