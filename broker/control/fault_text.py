"""Describes faults in English: which requests one matches, and what it does. Programs read ``match`` and ``do``."""

import json
from collections.abc import Callable, Mapping
from typing import Any

_MATCH = ("api", "versions", "request")
"""Conditions with a format of their own; all others are printed as name and value."""


def meets(match: Mapping[str, Any], *, skip: int = 0, times: int | None = 1, probability: float = 1.0) -> str:
    """Describe the requests that a fault affects: ``EndTxn v3-5 of transactional id x, 2 times``."""
    parts = [str(match.get("api") or "any request")]
    if (versions := match.get("versions")) is not None:
        first, last = versions
        parts.append(f"v{first}" if first == last else f"v{first}-{last}")
    conditions = [f"{name.replace('_', ' ')} {value}" for name, value in match.items() if name not in _MATCH]
    conditions += [f"{path} = {json.dumps(value)}" for path, value in (match.get("request") or {}).items()]
    if conditions:
        parts.append(f"of {', '.join(conditions)}")
    return ", ".join([" ".join(parts), *_limits(skip, times, probability)])


def _limits(skip: int, times: int | None, probability: float) -> list[str]:
    """Describe how often a fault applies; empty if it affects the next request only."""
    parts = [f"after {skip} of them"] if skip else []
    if times is None:
        parts.append("every time")
    elif times > 1:
        parts.append(f"{times} times")
    if probability < 1:
        parts.append(f"with probability {probability:g}")
    return parts


def does(effect: Mapping[str, Any]) -> str:
    """Describe the effect of a fault: ``served, then the connection is reset``."""
    parts = [_EFFECTS[name](value) if name in _EFFECTS else f"{name} {json.dumps(value)}"
             for name, value in effect.items() if name != "where"]  # fmt: skip
    if effect.get("where") == "after":
        parts.append("after it was served")
    return ", ".join(parts)


def _disconnect(way: str) -> str:
    return f"the connection is {'reset' if way == 'reset' else 'closed'}"


def _alter(fields: Mapping[str, Any]) -> str:
    return f"answered with {', '.join(f'{path} = {json.dumps(value)}' for path, value in fields.items())}"


def _bytes(faults: Mapping[str, Any]) -> str:
    return f"the answer's bytes: {', '.join(f'{name} {json.dumps(value)}' for name, value in faults.items())}"


_EFFECTS: Mapping[str, Callable[[Any], str]] = {
    "error": lambda code: f"refused with {code}",
    "disconnect": _disconnect,
    "drop": lambda _: "never answered",
    "delay_ms": lambda ms: f"delayed by {ms} ms",
    "throttle_ms": lambda ms: f"answered with a throttle time of {ms} ms",
    "apply_then": lambda then: f"served, then {does(then)}",
    "alter": _alter,
    "bytes": _bytes,
}
