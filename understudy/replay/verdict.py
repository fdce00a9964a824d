"""Classifies a request's outcome: answered, refused, cut off, late; and what a played-back cluster does by itself."""

from typing import Any, Final, NamedTuple

from understudy.replay.journal import Line

BY_ITSELF: Final = frozenset({"MEMBER_ID_REQUIRED", "DUPLICATE_SEQUENCE_NUMBER"})
"""Errors that belong to the protocol: Understudy returns them whenever Kafka does."""
REBALANCES: Final = frozenset({"REBALANCE_IN_PROGRESS"})
"""Errors caused by other members of a group."""
AFTER_APPEND: Final = frozenset({"REQUEST_TIMED_OUT", "NOT_ENOUGH_REPLICAS_AFTER_APPEND"})
"""Errors of requests that took effect nevertheless."""
NEVER_PLAYED: Final = frozenset({"SaslHandshake", "SaslAuthenticate"})
_BY_THE_CLIENT: Final = ("the client hung up", "the client left")
_AT_THE_END: Final = "the broker stopped"
_LONG_POLLS: Final = frozenset({"Fetch", "ShareFetch", "JoinGroup", "SyncGroup"})
CLOSE, DROP, ENDED = "close", "drop", "ended"


class Verdict(NamedTuple):
    """The outcome of a request or one of its items. ``cut``: why it got no response."""

    code: str | None = None
    cut: str | None = None
    late_ms: int = 0
    throttle_ms: int = 0

    @property
    def stops(self) -> bool:
        """Return whether its fault stops the request before the broker, and before later faults."""
        return self.cut is not None or (self.code is not None and self.code not in AFTER_APPEND)

    @property
    def effect(self) -> dict[str, Any]:
        """Return the arguments of a fault with the same effect, unless the request is only late or throttled."""
        if self.cut == DROP:
            return {"drop": True}
        if self.cut is not None:
            return {"disconnect": "close"}
        if self.code in AFTER_APPEND:
            return {"apply_then": {"error": self.code}}
        return {"error": self.code}


def cut_of(line: Line) -> str | None:
    """Return why a request got no response, other than because of its client; ENDED: the process stopped."""
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
    """Return when a request was answered or abandoned."""
    return int(line["ts_us"]) + max(int(line["duration_us"]), 0)


def is_gone(line: Line) -> bool:
    """Return whether its client disconnected before the response, so that the outcome is unknown."""
    return line["response"] is None and line["outcome"].removeprefix("closed: ").startswith(_BY_THE_CLIENT)


def late_of(line: Line, threshold_ms: int) -> int:
    """Return how much longer a request took than its API may; 0 if below the threshold."""
    took_ms = line["duration_us"] // 1000
    if line["api"] in _LONG_POLLS:
        request = line["request"] or {}
        if "max_wait_ms" not in request:
            return 0  # a rebalance takes as long as its members need
        took_ms -= request["max_wait_ms"]
    return int(took_ms) if took_ms >= threshold_ms else 0


def throttle_of(line: Line) -> int:
    """Return for how long a response throttles its client."""
    return int((line["response"] or {}).get("throttle_time_ms") or 0)
