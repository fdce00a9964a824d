"""Verbs about producer ids: what partitions know of them, what has happened to them."""

import heapq
from collections.abc import Iterable, Iterator
from typing import Any

from broker.clock import Slices
from broker.control.asked import Asked
from broker.control.log import log_of, producer_told
from broker.control.problems import not_found, unprocessable
from broker.middleware.producer_timeline import Life, ProducerEvent
from broker.middleware.timeline import Event

_MOST_NAMED = 5
_LETS_IN = frozenset({"initialised", "begun", "partitions added"})
_Placed = tuple[tuple[int, int], ProducerEvent]
_TOLD = ("at_ms", "until_ms", "event", "partition", "producer_epoch", "epoch_before", "epoch_after", "first_sequence",
         "last_sequence", "known_sequence", "batches", "client_id", "connection", "broker", "api", "version", "error",
         "rule", "detail", "fault")  # fmt: skip


async def read_all(asked: Asked) -> dict[str, Any]:
    """All producer ids that a partition knows or that were heard of, by id."""
    places: dict[int, list[dict[str, Any]]] = {}
    slices = Slices()
    for partition in list(asked.cluster.partitions.values()):
        await slices.pause()
        log = log_of(partition)
        for entry in list(log.producers.producers.values()) if log is not None and log.has_producers else ():
            places.setdefault(entry.producer_id, []).append({"partition": partition.name, **producer_told(entry)})
    lives = asked.cluster.producer_timelines.lives
    found = []
    for producer_id in sorted(places.keys() | lives.keys()):
        await slices.pause()
        found.append(_told(producer_id, lives.get(producer_id), places.get(producer_id, [])))
    return {"producers": found}


async def read(asked: Asked) -> dict[str, Any]:
    """One producer id: what each partition knows of it, and its timeline."""
    producer_id, life, places = known(asked)
    told = _told(producer_id, life, places)
    return {**told, "timeline": [_event(event) for event in events_of(asked, producer_id, life)]}


def known(asked: Asked) -> tuple[int, Life | None, list[dict[str, Any]]]:
    """The producer id in the path, what is remembered of it, and what partitions know. Raises Problem 404, 422."""
    text, timelines = asked.names["producer_id"], asked.cluster.producer_timelines
    if not (text.isascii() and text.isdigit()):
        wanted = "a producer id is a whole number"
        raise unprocessable(f"{wanted}, not {text!r}; GET /v1/producers lists them", "producer_id")
    producer_id, places = int(text), []
    for partition in asked.cluster.partitions.values():
        log = log_of(partition)
        entry = log.producers.producers.get(producer_id) if log is not None and log.has_producers else None
        if entry is not None:
            places.append({"partition": partition.name, **producer_told(entry)})
    life = timelines.of(producer_id)
    if life is None and not places:
        heard = [str(each) for each in list(timelines.lives)[-_MOST_NAMED:]]
        others = f"last heard of were {', '.join(heard)}" if heard else "no producer was heard of yet"
        raise not_found(f"nobody was given the producer id {producer_id}; {others}")
    return producer_id, life, places


def events_of(asked: Asked, producer_id: int, life: Life | None) -> Iterator[ProducerEvent]:
    """What has happened to a producer, oldest first; with what moved its transactional id, if it has one."""
    own = [] if life is None else list(life.events)
    name = None if life is None else life.transactional_id
    moves = [] if name is None else asked.cluster.timelines.of(name)
    mine = [_moved(event) for event in moves if event.producer_id == producer_id and event.api != "Produce"]
    placed = (((event.at_ms, 1), event) for event in own)
    return (event for _, event in heapq.merge(placed, _ranked(mine), key=_place_of))


def _ranked(moves: Iterable[ProducerEvent]) -> Iterator[_Placed]:
    """What lets batches in stands before those of the same millisecond, what ends a transaction behind them."""
    before = (0, 0)
    for event in moves:
        rank = 0 if event.event in _LETS_IN else 2
        before = (event.at_ms, max(rank, before[1]) if before[0] == event.at_ms else rank)
        yield before, event


def _place_of(placed: _Placed) -> tuple[int, int]:
    return placed[0]


def _moved(event: Event) -> ProducerEvent:
    """An event of a transactional id, as one of its producer's."""
    states = f"{event.state_before or '-'} -> {event.state_after}" if event.state_after != event.state_before else ""
    return ProducerEvent(
        event.at_ms,
        event.event,
        event.at_ms,
        producer_epoch=event.said.producer_epoch,
        epoch_before=event.epoch_before,
        epoch_after=event.epoch_after,
        client_id=event.client_id,
        connection=event.connection,
        broker=event.broker,
        api=event.api,
        version=event.version,
        error=event.error,
        rule=event.rule,
        detail="; ".join(filter(None, (states, event.detail))),
        fault=event.fault,
    )


def _event(event: ProducerEvent) -> dict[str, Any]:
    return {name: getattr(event, name) for name in _TOLD}


def _told(producer_id: int, life: Life | None, places: list[dict[str, Any]]) -> dict[str, Any]:
    heard = [] if life is None else [event.epoch_after for event in life.events]
    return {
        "producer_id": producer_id,
        "producer_epoch": max([*heard, *(place["producer_epoch"] for place in places)], default=-1),
        "transactional_id": None if life is None else life.transactional_id,
        "client_id": None if life is None else life.client_id,
        "partitions": places,
    }
