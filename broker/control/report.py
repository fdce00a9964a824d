"""The report for a failed test: one verb, so that the test libraries of all languages print the same.

It shows what a client library does not: the last requests with topics, partitions, groups and transactional ids, why
requests were refused, which faults matched no request, and what the test may be waiting for.
"""

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple

from broker.control.diagrams import diagram_of
from broker.control.faults import state_of
from broker.control.journal import find, topic_names
from broker.control.near_misses import NearMisses, distinct
from broker.control.problems import Problem
from broker.control.refusals import Subject, refusals_since
from broker.control.request import ControlRequest
from broker.control.verbs import answers
from broker.control.waiting import hints_of
from broker.request.connection import Connection
from broker.steering.faults.rules import Fault
from broker.steering.journal.entries import Decoded, TopicName, decode, title
from broker.steering.journal.mentioned import answered, few, requested
from broker.steering.journal.mentioned import names as names_in
from broker.steering.journal.ring import Entry
from broker.time.clock import Slices
from control_api.answers.common import Refusal
from control_api.answers.report import Report, ReportedRefusal, ReportedRequest
from control_api.diagrams import DiagramQuery
from control_api.journal import JournalQuery
from control_api.report import ReportQuery
from control_api.spelling import plain
from control_api.times import local_time
from protocol.errors import ErrorCode
from protocol.paths import errors

_ROUTINE = frozenset({"ApiVersions", "Fetch", "Heartbeat"})
_HEARTBEATS = frozenset({"ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat"})
_SEARCHED = 10
"""Requests that are read for each one shown: most requests of a consumer are polls.

Ours, with fewer a quiet consumer would be missing.
"""
_SEARCHED_AT_LEAST = 200  # so that a short report does not consist of polls alone
_MOST_SUBJECTS = 50  # as many as in a list of refusals
_MOST_NAMES = 20
"""The maximum number of hints about names that do not exist: arbitrary, more would not be read."""
_MOST_DRAWN, _DRAWN_REQUESTS = 2, 30
"""The number of transactional ids drawn, and of requests in each diagram; one group or producer is drawn too.

Ours, what is read of a failed test, and a screen for each.
"""
_A_TIME_FROM = 10**11
"""In milliseconds, in 1973: the journal's ``since`` takes smaller numbers for ids of requests."""
_TIME_OF_DAY = slice(11, 23)  # of 2026-01-31T12:00:00.000: the date is the same in a report


class DecodedEntry(NamedTuple):
    """A journal entry, decoded, with its connection if that is still known."""

    entry: Entry
    known: Decoded
    connection: Connection | None


@answers("report")
async def report(request: ControlRequest, query: ReportQuery) -> Report:
    """Build the report: requests, refusals, unmatched faults and hints, as fields and as one text."""
    since_ms, limit = query["since"], query["limit"]
    unmet = [state_of(fault) for fault in request.cluster.faults.faults.values() if not fault.hits]
    near = NearMisses(request.source, topic_names(request))
    entries = await _decoded_entries(request, since_ms, max(_SEARCHED * limit, _SEARCHED_AT_LEAST))
    requests = _requests(entries, near.name_of, limit)
    reasons = [each async for each in refusals_since(request, since_ms)]
    refusals = [
        ReportedRefusal(subject=plain(subject.text), error=str(last.error), why=plain(last.why), at_ms=last.at_ms or 0)
        for subject, last in reasons
    ]
    diagrams = [text async for text in _diagrams(request, since_ms, reasons)]
    hints = [hint async for hint in _hints(request, entries, near, since_ms)]
    faults = [json.dumps({"match": fault.match, "do": fault.do}) for fault in unmet]
    parts = (
        ("last requests", [each.text for each in requests] or ["none"]),
        ("faults that matched no request", faults),
        ("why requests were refused", [f"{each.subject}: {each.why}" for each in refusals]),
        ("what happened", [line for text in diagrams for line in text.splitlines()]),
        ("hints", hints),
    )
    text = "\n".join(f"{name}:\n" + "\n".join(f"  {plain(line)}" for line in lines) for name, lines in parts if lines)
    return Report(
        text=text,
        now_ms=request.cluster.clock.now_ms(),
        requests=tuple(requests),
        refusals=tuple(refusals),
        unmet_faults=tuple(unmet),
        diagrams=tuple(diagrams),
        hints=tuple(hints),
    )


# --- requests --------------------------------------------------------------------------------------------------------


async def _decoded_entries(request: ControlRequest, since_ms: int, most: int) -> list[DecodedEntry]:
    """Return the newest ``most`` journal entries, oldest first."""
    query: JournalQuery = {"limit": most}
    if since_ms >= _A_TIME_FROM:
        query["since"] = since_ms
    slices, entries = Slices(), []
    for raw, connections in await find(request, query):
        entry = Entry(*raw)
        entries.append(DecodedEntry(entry, decode(entry), connections.get(entry.connection)))
        await slices.pause()
    return entries


def _requests(entries: list[DecodedEntry], name_of: TopicName, limit: int) -> list[ReportedRequest]:
    """Return the newest ``limit`` requests, oldest first, without successful polls, heartbeats and ApiVersions."""
    shown: list[ReportedRequest] = []
    for entry, decoded, _ in reversed(entries):
        if len(shown) >= limit:
            break
        error = next(errors(decoded.response), None)
        api = "unreadable" if decoded.header is None else title(decoded.header.api_key)
        if error is None and entry.fault is None and _is_routine(api, decoded):
            continue
        shown.append(_request(entry, decoded, api, error, name_of))
    return shown[::-1]


def _is_routine(api: str, decoded: Decoded) -> bool:
    """Return whether clients send such a request all the time, and a successful one changes nothing."""
    request: Any = decoded.request
    response: Any = decoded.response
    if api in _HEARTBEATS and request is not None:
        return bool(request.member_epoch > 0 and (response is None or response.member_epoch == request.member_epoch))
    if api == "ShareFetch" and request is not None:
        parts = [part for topic in request.topics for part in topic.partitions]
        partitions = [] if response is None else [part for topic in response.responses for part in topic.partitions]
        return not any(part.acknowledgement_batches for part in parts) and not any(
            p.acquired_records for p in partitions
        )
    return api in _ROUTINE


def _request(entry: Entry, decoded: Decoded, api: str, error: ErrorCode | None, name_of: TopicName) -> ReportedRequest:
    header = decoded.header
    names = list(names_in(requested(decoded), name_of))
    refused = list(names_in((item for item in answered(decoded) if item.error is error), name_of)) if error else []
    result = ("ok" if entry.outcome == "answered" else entry.outcome) if error is None else error.name
    parts = [
        local_time(entry.at_ms)[_TIME_OF_DAY] or str(entry.at_ms),
        f"broker {entry.broker} connection {entry.connection} {(header and header.client_id) or '-'}:",
        f"{api} v{-1 if header is None else header.api_version}",
        *([few(names)] if names else []),
        f"-> {result}",
        *([f"for {few(refused)}"] if refused and len(names) != 1 else []),
        *([] if entry.duration_us < 0 else [f"({entry.duration_us / 1000:.1f} ms)"]),
        *([f"[fault {entry.fault}]"] if entry.fault else []),
    ]
    named = None if error is None else error.name
    return ReportedRequest(
        id=entry.id,
        at_ms=entry.at_ms,
        text=plain(" ".join(parts)),
        api=api,
        error=named,
        fault=entry.fault,
        names=tuple(names),
    )


# --- diagrams --------------------------------------------------------------------------------------------------------


async def _diagrams(
    request: ControlRequest, since_ms: int, refused: Sequence[tuple[Subject, Refusal]]
) -> AsyncIterator[str]:
    """Draw the latest transactional ids, those with refusals first; then the latest refused group or producer."""
    timelines = request.source.transaction_timelines
    names = dict.fromkeys((*timelines.refused()[-_MOST_SUBJECTS:], *timelines.ids()[-_MOST_SUBJECTS:]))
    histories = [(name, timelines.of(name).events) for name in names]
    recent = [(name, events) for name, events in histories if events and events[-1].until_ms >= since_ms]
    recent.sort(key=lambda each: any(event.error for event in each[1]))  # stable: in both kinds the latest comes last
    queries = [DiagramQuery(transactional_id=name) for name, _ in reversed(recent[-_MOST_DRAWN:])]
    others = [(last.at_ms or 0, subject) for subject, last in refused if subject.kind != "transactions"]
    if others:
        _, latest = max(others, key=lambda each: each[0])
        is_group = latest.kind == "groups"
        queries.append(DiagramQuery(group=latest.name) if is_group else DiagramQuery(producer_id=int(latest.name)))
    for each in queries:
        query: DiagramQuery = {**each, "since": since_ms, "until": None, "limit": _DRAWN_REQUESTS,
                               "errors": False, "polls": False}  # fmt: skip
        try:
            yield (await diagram_of(request, query)).text
        except Problem:  # the journal was cleared, or is off
            continue


# --- hints -----------------------------------------------------------------------------------------------------------


async def _hints(
    request: ControlRequest, entries: list[DecodedEntry], near: NearMisses, since_ms: int
) -> AsyncIterator[str]:
    """Yield, once each, hints that may explain why a test fails, waits or gets no records."""
    slices = Slices()
    for hint in distinct((hint for entry in entries for hint in near.names(entry.known)), _MOST_NAMES):
        yield plain(hint)
        await slices.pause()
    for fault in near.unmet:
        yield plain(_of_fault(fault, entries, near))
    for hint in hints_of(request, ((entry.entry, entry.known) for entry in entries), near.name_of, since_ms):
        yield hint


def _of_fault(fault: Fault, entries: list[DecodedEntry], near: NearMisses) -> str:
    """Return the hint about a fault that matched no request: the latest near miss, or that its API was not called."""
    for entry, decoded, connection in reversed(entries):
        why = near.fault(fault, entry, decoded, "" if connection is None else connection.listener)
        if why is not None and decoded.header is not None:
            client = decoded.header.client_id or "-"
            return f"fault {fault.id} {why}: {title(decoded.header.api_key)} of client {client}, request {entry.id}"
    if not entries:
        return f"fault {fault.id} matched no request: the journal has none to compare it with"
    api = fault.match.api
    if api is not None and not any(
        decoded.header is not None and decoded.header.api_key == api for _, decoded, _ in entries
    ):
        return f"fault {fault.id} matched no request: no {api.title} is among the last {len(entries)} requests"
    others = f"none of the last {len(entries)} matches all of its conditions but one"
    return f"fault {fault.id} matched no request, and {others}"
