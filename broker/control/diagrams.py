"""Verbs that draw a sequence diagram: of a transactional id, a producer, a group or a connection."""

from collections.abc import Iterable

from starlette.responses import Response

from broker.control.diagram import calls as requests
from broker.control.diagram import events, steps
from broker.control.diagram.calls import Call
from broker.control.diagram.drawing import HEAD, draw
from broker.control.diagram.events import Event
from broker.control.diagram.lanes import Lanes
from broker.control.diagram.mermaid import mermaid
from broker.control.diagram.text import text
from broker.control.problems import not_found, unprocessable
from broker.control.request import ControlRequest
from broker.control.transaction_history import Episode, chosen, without_id
from broker.control.verbs import answers
from broker.coordination.group.classic.states import State
from broker.partitions.transactions.markers import MarkerNote
from broker.steering.timelines.group_events import JOIN, LEAVE
from control_api.answers.diagrams import Diagram
from control_api.diagrams import DiagramQuery
from control_api.spelling import plain

_SUBJECTS = {
    "transactional_id": "Transactional id",
    "producer_id": "Producer",
    "group": "Group",
    "connection": "Connection",
}
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Content-Security-Policy of the SVG: no scripts, no external resources, inline style only."""


@answers("diagrams show")
async def show(request: ControlRequest, query: DiagramQuery) -> Diagram:
    """Return the diagram as steps, as text, in Mermaid's language, and as a drawing."""
    return await diagram_of(request, query)


@answers("diagrams svg")
async def image(request: ControlRequest, query: DiagramQuery) -> Response:
    """Return the diagram as an SVG image."""
    from broker.control.diagram.svg import svg  # noqa: PLC0415 - rarely requested

    content = svg(await diagram_of(request, query))
    return Response(content, media_type="image/svg+xml", headers={"Content-Security-Policy": POLICY})


async def diagram_of(request: ControlRequest, query: DiagramQuery) -> Diagram:
    """Build the diagram. Raises Problem 422 without exactly one subject, 404 if nothing is known about it."""
    subjects = [name for name in _SUBJECTS if name in query]
    if len(subjects) != 1:
        wanted = "give exactly one of transactional_id, producer_id, group and connection"
        raise unprocessable(f"{wanted}, not {len(subjects)} of them", subjects[1] if subjects else "transactional_id")
    subject = subjects[0]
    named = str(query[subject])  # type: ignore[literal-required]
    if "transaction" in query and subject != "transactional_id":
        raise without_id(subject)
    if "generation" in query and subject != "group":
        raise unprocessable(f"'generation' needs 'group', not {subject!r}", "generation")
    if "generation" in query:
        query = _of_generation(request, query, query["generation"])
    episode = chosen(request, named, query["transaction"]) if "transaction" in query else None
    calls = await requests.find(request, query, None if episode is None else _entries_of(episode))
    happened = [event for event in _events_of(request, query, calls, episode) if _within(event.at_ms, query)]
    notes = [note for note in _notes(request, query, episode) if _within(note.at_ms, query)]
    if not calls and not happened and not notes:
        raise not_found(f"nothing is known about {_SUBJECTS[subject].lower()} {named!r}, or not in this selection")
    others = events.assign(calls, happened)
    if query["errors"]:
        others, notes = [], []
    folded = steps.folded(calls)
    left_out = max(len(folded) - query["limit"], 0)
    shown = folded[left_out:]
    if left_out:  # events and notes of omitted requests are omitted too
        first_ms = shown[0].entry.at_ms
        others = [event for event in others if event.at_ms >= first_ms]
        notes = [note for note in notes if note.at_ms >= first_ms]
    lanes = Lanes(shown)
    rows = steps.build(request, shown, others, notes, lanes)
    participants = lanes.lanes()
    title = plain(f"{_SUBJECTS[subject]} {named}" + ("" if episode is None else f", {_title_of(episode)}"))
    if "generation" in query:
        title += f", {events.counter_of(request, named)} {query['generation']}"
    drawing = draw(participants, rows)
    return Diagram(
        title=title,
        text=text(title, participants, rows),
        mermaid=mermaid(title, participants, rows),
        lanes=participants,
        steps=rows,
        shapes=drawing.shapes,
        width=drawing.width,
        height=drawing.height,
        head=HEAD,
        left_out=left_out,
    )


def _title_of(episode: Episode) -> str:
    transaction = episode.described()
    return f"transaction {transaction.id}: {transaction.outcome}"


def _within(at_ms: int, query: DiagramQuery) -> bool:
    until = query["until"]
    return query["since"] <= at_ms and (until is None or at_ms <= until)


def _of_generation(request: ControlRequest, query: DiagramQuery, wanted: int) -> DiagramQuery:
    """Limit the query to the time of one generation. Raises Problem 404 if the timeline does not have it."""
    name = query["group"]
    happened = [
        event for event in request.source.group_timelines.of(name).events if event.error is None and event.count == 1
    ]
    generations = {
        event.epoch_after: at for at, event in enumerate(happened) if event.epoch_before != event.epoch_after > 0
    }
    if wanted not in generations:
        latest = ", ".join(map(str, sorted(generations)[-5:])) or "none"  # five are enough to see a mistyped one
        noun = events.counter_of(request, name)
        raise not_found(f"group {name!r} has no {noun} {wanted}, or its events were dropped; the latest: {latest}")
    begin, before = generations[wanted], max((at for epoch, at in generations.items() if epoch < wanted), default=-1)
    while begin - 1 > before and happened[begin - 1].state_after != State.STABLE:
        begin -= 1
    if begin - 1 > before and happened[begin - 1].event in {JOIN, LEAVE}:  # the request that caused the rebalance
        begin -= 1
    since, until = query["since"], query["until"]
    ends = [happened[at].at_ms for epoch, at in generations.items() if epoch > wanted]
    ends += [] if until is None else [until]
    return {**query, "since": max(since, happened[begin].at_ms), "until": min(ends, default=None)}


def _entries_of(episode: Episode) -> tuple[int, int | None]:
    """Return the journal ids of a transaction's requests: from the end of the previous one to its own end."""
    first = episode.after + 1 if episode.after else min(event.entry for event in episode.events if event.entry)
    return first, episode.last_entry if episode.is_over else None


def _is_of(note: MarkerNote, episode: Episode) -> bool:
    first = 0 if episode.begun is None else episode.begun.entry or 0
    return first <= note.newest and (episode.before is None or note.newest < episode.before)


def _events_of(
    request: ControlRequest, query: DiagramQuery, calls: list[Call], episode: Episode | None = None
) -> Iterable[Event]:
    """Yield the events of the timelines; for a connection only those of its own requests."""
    if "group" in query:
        yield from events.of_group(request, query["group"])
        return
    if "connection" in query:
        for transactional_id in dict.fromkeys(filter(None, map(_transactional_id, calls))):
            yield from (
                each for each in events.of_transaction(request, transactional_id) if each.connection is not None
            )
        for group in dict.fromkeys(filter(None, (getattr(call.known.request, "group_id", None) for call in calls))):
            yield from (each for each in events.of_group(request, group) if each.connection is not None)
    elif (name := _id_of(request, query)) is not None:
        yield from events.of_transaction(request, name, None if episode is None else episode.positions)
    producers = {producer for call in calls for producer, _ in call.producers}
    for producer_id in {query["producer_id"]} if "producer_id" in query else producers:
        for event in events.of_producer(request, producer_id):
            if episode is None or episode.events[0].at_ms <= event.at_ms <= episode.events[-1].until_ms:
                yield event


def _transactional_id(call: Call) -> str | None:
    request = call.known.request
    transactions = getattr(request, "transactions", None)
    transactional_id = transactions[0].transactional_id if transactions else getattr(request, "transactional_id", None)
    return transactional_id if isinstance(transactional_id, str) else None


def _notes(request: ControlRequest, query: DiagramQuery, episode: Episode | None = None) -> list[MarkerNote]:
    """Return the markers and holds of the transactional id; with a producer id, only those of that producer."""
    name = _id_of(request, query)
    notes = [] if name is None else events.marker_notes(request, name)
    producer_id = query.get("producer_id")
    if episode is not None:
        notes = [note for note in notes if _is_of(note, episode)]
    return [note for note in notes if producer_id is None or note.producer_id == producer_id]


def _id_of(request: ControlRequest, query: DiagramQuery) -> str | None:
    """Return the transactional id of the query, or of the queried producer."""
    if "producer_id" in query:
        history = request.source.producer_timelines.of(query["producer_id"])
        return None if history is None else history.transactional_id
    return query.get("transactional_id")
