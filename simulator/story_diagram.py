"""A part of a run as a sequence diagram in characters: processes, brokers, requests, and the program's log lines."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from broker.control.diagram.calls import Call, find
from broker.control.diagram.steps import folded
from broker.control.diagram.text import text
from broker.control.request import ControlRequest
from control_api.answers.diagrams import Lane, Step
from control_api.diagrams import DiagramQuery
from control_api.spelling import plain
from simulator.trace import Trace

if TYPE_CHECKING:
    from broker.cluster.cluster import Cluster

_MOST_CALLS, _MOST_LINES, _MOST_CHARACTERS = 60, 100, 200  # two screens
_LATEST_MS = 60_000  # as long as the longest of clients' timeouts
_BEFORE_US, _AFTER_US = 6_000_000, 3_000_000
"""How much of the run is drawn before and after the moment.

Ours, a session timeout before, and what follows from it.
"""
_WORLD = "faults, the test"
Lines = Sequence[tuple[int, str, str]]


async def diagram(cluster: "Cluster", trace: Trace, names: Mapping[int, str], begin_ms: int, at_us: int) -> list[str]:
    """Return the lines of the diagram around a virtual time: those next to it, if there are too many.

    ``names``: port of a client's end -> process. ``begin_ms``: the brokers' time at the start of the run.
    """
    first_us, last_us = max(at_us - _BEFORE_US, 0), at_us + _AFTER_US
    request = ControlRequest(cluster, {})
    since, until = begin_ms + first_us // 1000, begin_ms + last_us // 1000
    calls = folded(
        # More than a story's seconds have; _MOST_CALLS of them are drawn.
        await find(request, {"since": since, "until": until, "limit": 1000, "errors": False, "polls": False})
    )
    calls = sorted(calls, key=lambda call: abs(call.entry.at_ms - begin_ms - at_us // 1000))[:_MOST_CALLS]
    kept = [each for each in trace.kept if first_us <= each[0] <= last_us and each[1] != "network"]
    kept = sorted(kept, key=lambda line: abs(line[0] - at_us))[:_MOST_LINES]
    programs = [name for call in calls if (name := _name(call, names))]
    programs += [who for _, who, _ in kept if who not in ("***", "FINDING", "log", "asyncio", "test")]
    lanes = [_WORLD, *sorted(dict.fromkeys(programs)), *(f"broker {each}" for each in sorted(cluster.nodes))]
    calls.sort(key=lambda call: call.entry.at_ms)
    steps = [each for call in calls for each in _of_call(call, lanes, names)]
    steps += [_of_line(line, lanes, begin_ms) for line in sorted(kept, key=lambda line: line[0])]
    steps.sort(key=lambda step: step.at_ms)
    kinds = [Lane("broker" if each.startswith("broker") else "client", each) for each in lanes]
    return text("The story, with the requests that changed something:", kinds, steps).splitlines()


async def unanswered(cluster: "Cluster", names: Mapping[int, str]) -> list[str]:
    """Describe each request of the program that has no response yet."""
    now_ms, request = cluster.clock.now_ms(), ControlRequest(cluster, {})
    # The newest hundred: a program waits for few at a time.
    query: DiagramQuery = {"since": now_ms - _LATEST_MS, "until": None, "limit": 100, "errors": False, "polls": True}
    open_calls = [call for call in await find(request, query) if call.entry.duration_us < 0 and _name(call, names)]
    return [
        f"  {_name(call, names)}: {call.api} {call.asks} has no response of broker {call.entry.broker} "
        f"for {(now_ms - call.entry.at_ms) / 1000:.1f} s"
        for call in open_calls
    ]


def _name(call: Call, names: Mapping[int, str]) -> str | None:
    return None if call.connection is None else names.get(call.connection.client_port)


def _of_call(call: Call, lanes: list[str], names: Mapping[int, str]) -> list[Step]:
    name = _name(call, names)
    if name is None:
        return []
    entry, source, target = call.entry, lanes.index(name), lanes.index(f"broker {call.entry.broker}")
    label = f"{call.api} {call.asks}".strip()
    request = Step("request", entry.at_ms, source, target, plain(label), call.count, entry=entry.id)
    if entry.duration_us < 0:
        return [request]
    at_ms = entry.at_ms + entry.duration_us // 1000
    answered = Step("answer", at_ms, target, source, plain(call.result), error=call.error, entry=entry.id)
    return [request, answered]


def _of_line(line: tuple[int, str, str], lanes: list[str], begin_ms: int) -> Step:
    at_us, who, what = line
    lane = lanes.index(who) if who in lanes else 0
    head, *_ = what.splitlines() or [""]
    marked = head if who in lanes else f"{'' if who == '***' else who + ': '}{head}"
    return Step(
        "fault" if who == "***" else "state", begin_ms + at_us // 1000, lane, lane, plain(marked[:_MOST_CHARACTERS])
    )
