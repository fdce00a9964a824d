"""Verbs about producer ids: their state in each partition, and their timeline."""

import heapq
from collections.abc import Iterable, Iterator

from broker.control.problems import not_found, unprocessable
from broker.control.request import ControlRequest, number_in
from broker.control.topics import log_of, producer_answer
from broker.control.verbs import answers
from broker.settings.specification import cite
from broker.steering.timelines.producer_events import ProducerEvent, ProducerHistory
from broker.steering.timelines.transaction_events import Event
from broker.time.clock import Slices
from control_api.answers import producers as answer
from control_api.answers.producers import ProducerLife, ProducerPlace, Producers
from control_api.encoding import copied
from storage.producers.state import ProducerEntry

_MOST_NAMED = 5  # in an error message: enough to see a mistyped id
_LETS_IN = frozenset({"initialised", "begun", "partitions added"})
_Placed = tuple[tuple[int, int], ProducerEvent]


@answers("producers list")
async def read_all(request: ControlRequest) -> Producers:
    """List all producer ids with a state in a partition or with a timeline, by id."""
    places: dict[int, list[ProducerPlace]] = {}
    slices = Slices()
    for partition in list(request.source.partitions.values()):
        await slices.pause()
        log = log_of(partition)
        for entry in () if log is None else log.producer_log.entries():
            places.setdefault(entry.producer_id, []).append(_place(partition.name, entry))
    timelines = request.source.producer_timelines
    producers = []
    for producer_id in sorted({*places, *timelines.ids()}):
        await slices.pause()
        producers.append(_producer(producer_id, timelines.of(producer_id), places.get(producer_id, [])))
    return {"producers": producers}


@answers("producers show")
async def read(request: ControlRequest) -> ProducerLife:
    """Show one producer id: its state in each partition, and its timeline."""
    producer_id, history, places = known(request)
    timeline = tuple(
        copied(answer.ProducerEvent, event, citation=cite(event.rule, event.source))
        for event in events_of(request, producer_id, history)
    )
    return _producer(producer_id, history, places, timeline)


def known(request: ControlRequest) -> tuple[int, ProducerHistory | None, list[ProducerPlace]]:
    """Return the producer id in the path, its timeline, and its state in partitions. Raises Problem 404, 422."""
    text, timelines = request.names["producer_id"], request.source.producer_timelines
    producer_id = number_in(text)
    if producer_id is None:
        wanted = "a producer id is a whole number"
        raise unprocessable(f"{wanted}, not {text!r}; GET /v1/producers lists them", "producer_id")
    places = []
    for partition in request.source.partitions.values():
        log = log_of(partition)
        entry = None if log is None else log.producer_log.get(producer_id)
        if entry is not None:
            places.append(_place(partition.name, entry))
    history = timelines.of(producer_id)
    if history is None and not places:
        latest = [str(each) for each in timelines.ids()[-_MOST_NAMED:]]
        others = f"the latest in use are {', '.join(latest)}" if latest else "no producer has been seen yet"
        raise not_found(f"no producer has the producer id {producer_id}; {others}")
    return producer_id, history, places


def events_of(request: ControlRequest, producer_id: int, history: ProducerHistory | None) -> Iterator[ProducerEvent]:
    """Merge the events of a producer with those of its transactional id, if it has one, oldest first."""
    life = [] if history is None else history.events
    name = None if history is None else history.transactional_id
    moves = [] if name is None else request.source.transaction_timelines.of(name).events
    mine = [_moved(event) for event in moves if event.producer_id == producer_id and event.api != "Produce"]
    placed = (((event.at_ms, 1), event) for event in life)
    return (event for _, event in heapq.merge(placed, _ranked(mine), key=_place_of))


def _ranked(moves: Iterable[ProducerEvent]) -> Iterator[_Placed]:
    """Order events within a millisecond: those that begin a transaction, then batches, then those that end it."""
    before = (0, 0)
    for event in moves:
        rank = 0 if event.event in _LETS_IN else 2
        before = (event.at_ms, max(rank, before[1]) if before[0] == event.at_ms else rank)
        yield before, event


def _place_of(placed: _Placed) -> tuple[int, int]:
    return placed[0]


def _moved(event: Event) -> ProducerEvent:
    """Convert an event of a transactional id into one of its producer."""
    before = f"{event.state_before} -> " if event.state_before else ""
    states = f"{before}{event.state_after}" if event.state_after != event.state_before else ""
    return ProducerEvent(
        event.at_ms,
        event.event,
        event.until_ms,
        producer_epoch=event.request_producer.producer_epoch,
        epoch_before=event.epoch_before,
        epoch_after=event.epoch_after,
        client_id=event.client_id,
        connection=event.connection,
        broker=event.broker,
        api=event.api,
        version=event.version,
        error=event.error,
        rule=event.rule,
        source=event.source,
        count=event.count,
        detail="; ".join(filter(None, (states, event.detail))),
        fault=event.fault,
    )


def _place(partition: str, entry: ProducerEntry) -> ProducerPlace:
    producer = producer_answer(entry)
    return copied(ProducerPlace, producer, partition=partition)


def _producer(
    producer_id: int,
    history: ProducerHistory | None,
    places: list[ProducerPlace],
    timeline: tuple[answer.ProducerEvent, ...] = (),
) -> ProducerLife:
    epochs = [] if history is None else [event.epoch_after for event in history.events]
    return ProducerLife(
        producer_id=producer_id,
        producer_epoch=max([*epochs, *(place.producer_epoch for place in places)], default=-1),
        transactional_id=None if history is None else history.transactional_id,
        client_id=None if history is None else history.client_id,
        partitions=tuple(places),
        timeline=timeline,
        forgotten=0 if history is None else history.forgotten,
    )
