"""Performs a call of a verb: reads body and query, calls its function, and records the step for scenarios."""

import json
from collections.abc import Generator, Mapping
from typing import Any

from broker.control.recorder import Done
from broker.control.request import ControlRequest
from broker.control.verbs import function_of
from broker.time.clock import in_slices
from control_api.calls import arguments_of
from control_api.reading import check_no_body, read_body_in_steps, read_query
from control_api.verb import Verb

_NOT_RECORDED = frozenset(
    {
        *("scenario run", "journal clear", "journal rotate"),
        *("users set", "users delete"),
        *("clusters create", "clusters delete"),
    }
)
"""Verbs that do not change the cluster, or have secret arguments; `scenario run` has its steps recorded instead."""
_STEP = 256
"""Elements of an argument that are measured between two pauses.

Ours, microseconds of work, beside which asking the clock costs little.
"""


async def perform(request: ControlRequest, verb: Verb, query: Mapping[str, str]) -> Any:
    """Perform a verb and return its answer. Raises Unfit, Problem or KafkaError."""
    if request.source.own is not None and verb.name != "health":
        await request.source.own.rebuilding.over()
    resets = request.recorder.resets
    asked_for = read_query(verb.query, query)
    arguments: list[Any] = []
    if verb.body:
        arguments.append(await in_slices(read_body_in_steps(verb.body, request.document)))
    else:
        check_no_body(request.document)
    if verb.query:
        arguments.append(asked_for)
    function = request.source.function_of(verb.name) or function_of(verb)
    answer = await function(request, *arguments)
    if verb.method != "GET" and verb.name not in _NOT_RECORDED:
        await _record(request, verb, query, answer, resets)
    return answer


async def _record(request: ControlRequest, verb: Verb, query: Mapping[str, str], answer: Any, resets: int) -> None:
    if verb.name == "reset" and not request.document.get("keep"):
        request.recorder.clear()
        return
    if request.recorder.resets != resets:  # e.g. an advance of the clock that a reset ended
        return
    fault_id = str(answer.id) if verb.name == "faults add" else ""
    arguments = arguments_of(verb, request.names, query, request.document)
    at_ms = -1 if request.source.own is None else request.source.own.clock.now_ms()
    request.recorder.add(Done(verb.name, arguments, at_ms, fault_id, await in_slices(_size_of(arguments))))


def _size_of(arguments: Mapping[str, Any]) -> Generator[None, None, int]:
    """Estimate the size of the arguments as JSON, in bytes; long lists are measured in steps."""
    size = 0
    for value in arguments.values():
        if isinstance(value, list):
            for at in range(0, len(value), _STEP):
                size += len(json.dumps(value[at : at + _STEP]))
                yield
        else:
            size += len(json.dumps(value))
    return size
