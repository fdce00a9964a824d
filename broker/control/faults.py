"""Verbs about what is to go wrong."""

import json
from typing import Any

from broker.control.asked import Asked
from broker.control.fault_body import ACTIONS, CONDITIONS, MatchReader, read_action
from broker.control.problems import not_found, unprocessable
from broker.handlers import APIS
from broker.middleware.script import Fault

_ACTION: dict[str, Any] = {
    "error": {"type": "string", "description": "an error code by Kafka's name: answered instead of doing it"},
    "disconnect": {"enum": ["close", "reset"], "description": "hang up"},
    "drop": {"const": True, "description": "never answer; the connection stays open and silent"},
    "delay_ms": {"type": "integer", "minimum": 1, "description": "wait, on the cluster's clock"},
}
_BYTES: dict[str, Any] = {
    "truncate": {"type": "integer", "minimum": 0, "description": "so many bytes go out, then the connection closes"},
    "corrupt": {
        "type": "array",
        "items": {"type": "integer"},
        "minItems": 2,
        "maxItems": 2,
        "description": "[offset, mask]: flips bits of one byte, counted from the frame's size; negative: from the end",
    },
    "correlation_id": {"type": "integer"},
    "drip": {
        "type": "object",
        "properties": {
            "size": {"type": "integer", "minimum": 1, "default": 1},
            "every_ms": {"type": "integer", "minimum": 0, "default": 10},
        },
        "additionalProperties": False,
    },
    "extra": {"type": "string", "description": "hexadecimal bytes behind the answer"},
}
_ONE = {"minProperties": 1, "maxProperties": 1, "additionalProperties": False}
DO: dict[str, Any] = {
    "type": "object",
    "description": "one thing of these",
    "properties": {
        **_ACTION,
        "where": {"enum": ["before", "after"], "default": "before", "description": "with delay_ms"},
        "apply_then": {
            "type": "object",
            "properties": _ACTION,
            "description": "do it, then this instead of the reply",
            **_ONE,
        },
        "throttle_ms": {"type": "integer", "minimum": 1, "description": "answer with this throttle time (KIP-219)"},
        "alter": {"type": "object", "description": "path in the response, such as topics.*.error_code, to its value"},
        "bytes": {"type": "object", "properties": _BYTES, **_ONE},
    },
    "additionalProperties": False,
}
MATCH: dict[str, Any] = {
    "type": "object",
    "description": "conditions, joined by AND",
    "properties": {
        "api": {"type": "string", "description": "such as EndTxn"},
        "versions": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2},
        "broker": {"type": "integer"},
        "listener": {"type": "string"},
        "client_id": {"type": "string"},
        "topic": {"type": "string"},
        "partition": {"type": "integer", "minimum": 0},
        "group": {"type": "string"},
        "transactional_id": {"type": "string"},
        "request": {"type": "object", "description": "path in the request to its value"},
    },
    "additionalProperties": False,
}
FAULT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "match": MATCH,
        "skip": {"type": "integer", "minimum": 0, "default": 0},
        "times": {"type": ["integer", "null"], "minimum": 1, "default": 1, "description": "null: every time"},
        "probability": {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "default": 1},
        "do": DO,
    },
    "required": ["do"],
    "additionalProperties": False,
}
QUERY_LIST = {"unmet": {"type": "boolean", "description": "only those that no request has met"}}
QUERY_SHOW = {
    "wait_hits": {"type": "integer", "minimum": 0, "description": "answer once it has so many hits"},
    "timeout_ms": {"type": "integer", "minimum": 0, "default": 10_000, "description": "or after so long"},
}


def _shown(fault: Fault) -> dict[str, Any]:
    return {
        "id": fault.id,
        "hits": fault.hits,
        "match": fault.said["match"],
        "skip": fault.skip,
        "times": fault.times,
        "probability": fault.probability,
        "do": fault.said["do"],
    }


async def add(asked: Asked) -> dict[str, Any]:
    """Meet matching requests with a fault; it stands behind those that are there already."""
    _check_places(asked)
    cluster, body = asked.cluster, asked.body
    if "do" not in body:
        raise unprocessable('a fault needs "do", such as {"error": "NOT_COORDINATOR"} or {"disconnect": "reset"}', "do")
    listeners = dict.fromkeys(name for node in cluster.nodes.values() for name in node.bound)
    match = MatchReader(APIS, cluster.nodes, listeners).read(body.get("match", {}))
    action = read_action(body["do"], match)
    times = None if body.get("times", 1) is None else asked.integer("times", 1, least=1)
    probability = body.get("probability", 1.0)
    if isinstance(probability, bool) or not isinstance(probability, int | float) or not 0 < probability <= 1:
        raise unprocessable(f"'probability' must be above 0 and at most 1, not {probability!r}", "probability")
    said = {"match": dict(body.get("match", {})), "do": dict(body["do"])}
    if match.api is not None:
        said["match"]["api"] = match.api.title
    fault = cluster.faults.add(
        match, action, said, skip=asked.integer("skip", 0), times=times, probability=float(probability)
    )
    return _shown(fault)


def _check_places(asked: Asked) -> None:
    """Conditions stand in 'match', what is done in 'do'. Raises Problem 422."""
    for name in asked.body:
        for place, names in (("match", CONDITIONS), ("do", ACTIONS)):
            if name in names:
                meant = json.dumps({place: {name: asked.body[name]}})
                raise unprocessable(f"{name!r} goes into {place!r}: {meant}", name)
    asked.only("match", "skip", "times", "probability", "do")


async def read_all(asked: Asked) -> dict[str, Any]:
    """All faults, the oldest first; or those that no request has met."""
    unmet = asked.flag("unmet")
    return {"faults": [_shown(fault) for fault in asked.cluster.faults.faults.values() if not (unmet and fault.hits)]}


async def read(asked: Asked) -> dict[str, Any]:
    """One fault; with wait_hits, when it has so many hits or time (the machine's, not the cluster's) is up."""
    fault = _named(asked)
    hits, timeout_ms = asked.number("wait_hits", 0), asked.number("timeout_ms", 10_000)
    await fault.wait_hits(hits, timeout_ms / 1000)
    return _shown(fault)


async def remove(asked: Asked) -> dict[str, Any]:
    """Take one fault back."""
    fault = _named(asked)
    asked.cluster.faults.remove(fault.id)
    return _shown(fault)


async def clear(asked: Asked) -> dict[str, Any]:
    """Take all faults back."""
    gone = len(asked.cluster.faults.faults)
    asked.cluster.faults.clear()
    return {"removed": gone}


def _named(asked: Asked) -> Fault:
    name = asked.names["fault"]
    fault = asked.cluster.faults.faults.get(name)
    if fault is None:
        known = list(asked.cluster.faults.faults)
        there = f"there are {', '.join(known[-10:])}" if known else "there is none: they go with a reset"
        raise not_found(f"there is no fault {name}; {there}")
    return fault
