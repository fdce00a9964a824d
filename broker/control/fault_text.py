"""Faults in plain English: which requests one meets, and what it does. Programs read ``match`` and ``do``."""

import json
from collections.abc import Callable, Mapping
from typing import Any

_MATCH = ("api", "versions", "request")
"""Conditions that are worded in a way of their own; the others are a name and a value."""


def meets(match: Mapping[str, Any], *, skip: int = 0, times: int | None = 1, probability: float = 1.0) -> str:
    """The requests that it meets: ``EndTxn v3-5 of transactional id x, the first 2``."""
    parts = [str(match.get("api") or "any request")]
    if (versions := match.get("versions")) is not None:
        first, last = versions
        parts.append(f"v{first}" if first == last else f"v{first}-{last}")
    found = [f"{name.replace('_', ' ')} {value}" for name, value in match.items() if name not in _MATCH]
    found += [f"{path} = {json.dumps(value)}" for path, value in (match.get("request") or {}).items()]
    if found:
        parts.append(f"of {', '.join(found)}")
    return ", ".join([" ".join(parts), *_limits(skip, times, probability)])


def _limits(skip: int, times: int | None, probability: float) -> list[str]:
    """How often, where it is not simply the next one."""
    parts = [f"after {skip} of them"] if skip else []
    if times is None:
        parts.append("every time")
    elif times > 1:
        parts.append(f"{times} times")
    if probability < 1:
        parts.append(f"with probability {probability:g}")
    return parts


def does(effect: Mapping[str, Any]) -> str:
    """What it does: ``served, then the connection is reset instead of an answer``."""
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
