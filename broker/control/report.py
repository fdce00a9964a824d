"""The report of a failed test: one verb, so that the test libraries of all languages print the same.

It has what the cluster knows and a client library does not show: the last requests with topics, partitions, groups and
transactional ids, why something was refused, which faults no request met, and what a test may be waiting for.
"""

import json
from collections.abc import AsyncIterator, Iterator

from broker.control.coordinators import group_coordinators, transaction_coordinators
from broker.control.diagrams import diagram_of
from broker.control.faults import state_of
from broker.control.journal import find, topic_names
from broker.control.problems import Problem
from broker.control.refusals import refusals_since
from broker.control.request import Asked
from broker.control.verbs import answers
from broker.coordination.group.classic.group import ClassicGroup
from broker.coordination.group.classic.states import State
from broker.journal.entries import Decoded, TopicName, decode, title
from broker.journal.mentioned import answered, few, requested
from broker.journal.mentioned import names as names_in
from broker.journal.ring import Entry
from protocol.errors import ErrorCode
from protocol.paths import errors
from understudy.control_api.answers.report import Report, ReportedRefusal, ReportedRequest
from understudy.control_api.diagrams import DiagramQuery
from understudy.control_api.journal import JournalQuery
from understudy.control_api.report import ReportQuery
from understudy.control_api.spelling import plain, suggestion
from understudy.control_api.times import local_time

_ROUTINE = frozenset({"ApiVersions", "Fetch", "Heartbeat"})
_SEARCHED = 10
"""So many requests are looked at for each that is shown: most of a consumer's are polls."""
_MOST_NAMED = 4
_MOST_SUBJECTS = 50
_MOST_DRAWN, _DRAWN_REQUESTS = 2, 30
"""So many transactional ids are drawn, with so many requests each."""
_A_TIME_FROM = 10**11
"""The journal takes smaller numbers for ids; no clock shows 1973."""
_TIME_OF_DAY = slice(11, 23)


@answers("report")
async def report(asked: Asked, query: ReportQuery) -> Report:
    """Requests, refusals, unmet faults and hints, as fields and as one text."""
    since_ms, limit = query["since"], query["limit"]
    unmet = [state_of(fault) for fault in asked.cluster.faults.faults.values() if not fault.hits]
    requests, unknown_topics = await _requests(asked, since_ms, limit)
    refusals = [
        ReportedRefusal(subject=plain(subject.text), error=str(last.error), why=plain(last.why), at_ms=last.at_ms or 0)
        async for subject, last in refusals_since(asked, since_ms)
    ]
    diagrams = [text async for text in _diagrams(asked, since_ms)]
    hints = [*_topic_hints(asked, unknown_topics), *_waiting(asked)]
    faults = [json.dumps({"match": fault.match, "do": fault.do}) for fault in unmet]
    parts = (
        ("last requests", [each.text for each in requests] or ["none"]),
        ("faults that no request met", faults),
        ("why it refused", [f"{each.subject}: {each.why}" for each in refusals]),
        ("what happened", [line for text in diagrams for line in text.splitlines()]),
        ("hints", hints),
    )
    text = "\n".join(f"{name}:\n" + "\n".join(f"  {plain(line)}" for line in lines) for name, lines in parts if lines)
    return Report(
        text=text,
        now_ms=asked.cluster.clock.now_ms(),
        requests=tuple(requests),
        refusals=tuple(refusals),
        unmet_faults=tuple(unmet),
        diagrams=tuple(diagrams),
        hints=tuple(hints),
    )


# --- requests --------------------------------------------------------------------------------------------------------


async def _requests(asked: Asked, since_ms: int, limit: int) -> tuple[list[ReportedRequest], list[str]]:
    """The newest requests, and the names of topics that a request found missing."""
    query: JournalQuery = {"limit": _SEARCHED * limit}
    if since_ms >= _A_TIME_FROM:
        query["since"] = since_ms
    name_of, found, unknown = topic_names(asked), [], set()
    for raw, _ in await find(asked, query):
        entry = Entry(*raw)
        known = decode(entry)
        error = next(errors(known.response), None)
        api = "unreadable" if known.header is None else title(known.header.api_key)
        if api in _ROUTINE and error is None and entry.fault is None:
            continue
        found.append(_request(entry, known, api, error, name_of))
        unknown |= {each.topic for each in answered(known) if each.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    return found[max(len(found) - limit, 0) :], sorted(str(each) for each in unknown if isinstance(each, str))


def _request(entry: Entry, known: Decoded, api: str, error: ErrorCode | None, name_of: TopicName) -> ReportedRequest:
    header = known.header
    names = list(names_in(requested(known), name_of))
    refused = list(names_in((each for each in answered(known) if each.error is error), name_of)) if error else []
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


async def _diagrams(asked: Asked, since_ms: int) -> AsyncIterator[str]:
    """Of the transactional ids that were refused something last, or else were used last."""
    timelines = asked.source.transaction_timelines
    histories = [(name, timelines.of(name).events) for name in timelines.ids()[-_MOST_SUBJECTS:]]
    recent = [(name, events) for name, events in histories if events and events[-1].until_ms >= since_ms]
    recent.sort(key=lambda each: any(event.error for event in each[1]))  # stable: of each kind the latest comes last
    for name, _ in reversed(recent[-_MOST_DRAWN:]):
        query: DiagramQuery = {"transactional_id": name, "since": since_ms, "until": None, "limit": _DRAWN_REQUESTS,
                               "errors": False, "polls": False}  # fmt: skip
        try:
            yield (await diagram_of(asked, query)).text
        except Problem:  # the journal was cleared, or is off
            continue


# --- hints -----------------------------------------------------------------------------------------------------------


def _topic_hints(asked: Asked, unknown: list[str]) -> Iterator[str]:
    topics = asked.cluster.image.topics
    known = [str(name) for name, topic in topics.items() if not topic.internal]
    for name in unknown:
        if name not in topics:
            yield plain(f"a client asked for topic {name!r}, which does not exist{suggestion(name, known)}")


def _waiting(asked: Asked) -> Iterator[str]:
    """What a client that gets no answer may be waiting for."""
    if asked.cluster.clock.frozen:
        yield "the clock is frozen: no timeout, session or poll ends before it is advanced"
    for _, runtime in group_coordinators(asked.cluster):
        for group in runtime.machine.groups.values():
            if isinstance(group, ClassicGroup) and group.state is State.PREPARING_REBALANCE:
                yield plain(_of_rebalance(group))
    for _, transactions in transaction_coordinators(asked.cluster):
        for record in transactions.machine.transactions.values():
            held = asked.cluster.markers.holds.held(record.transactional_id)
            if held is not None and held[1]:
                yield plain(f"transactional id {record.transactional_id} is held at {held[0].value}, until its release")


def _of_rebalance(group: ClassicGroup) -> str:
    """Which members a rebalance waits for."""
    if group.previous_state is State.EMPTY:
        return (
            f"group {group.group_id} is new and waits for further members, with {len(group.members)} so far: "
            "group.initial.rebalance.delay.ms"
        )
    missing = [member for member in group.members.values() if member.member_id not in group.awaiting_join]
    clients = ", ".join(sorted({member.client_id for member in missing})[:_MOST_NAMED])
    return f"group {group.group_id} is rebalancing and waits for {len(missing)} members to join again: {clients}"
