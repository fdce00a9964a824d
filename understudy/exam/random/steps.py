"""The steps of an application in random schedules: a table, to which a line is added."""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from understudy.exam.random.administration import Administrator
from understudy.exam.random.clients import Client, Copier, Reader, RecordProducer
from understudy.exam.random.sharing import Sharer

PRODUCERS: Final = ("plain", "idempotent", "transactional")
READERS: Final = ("reader", "member")
ALL: Final = (*PRODUCERS, *READERS, "copier", "sharer")
ACKNOWLEDGED: Final = ("accept", "accept", "accept", "release", "reject")
Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the table: which roles take the step, what is drawn for it, and how it is played.

    `draw` gets the client's options and the partitions of its topic. The number is the step's weight: sends and polls
    have the largest, so that most of a schedule moves records. What is drawn is small, a few records,
    partitions and names, so that steps meet at them.
    """

    name: str
    weight: int
    roles: Collection[str]
    draw: Callable[[Random, Mapping[str, Any], int], Fields]
    play: Callable[[Any, Fields], object]


def _records(chance: Random, _options: Mapping[str, Any], partitions: int) -> Fields:
    # Mostly few records, so that steps of other clients come between them; mostly awaited.
    count, flush = chance.choice((1, 1, 2, 5, 12)), chance.random() < 0.6
    key = chance.choice((None, None, "k0", "k1"))
    places = [chance.randrange(partitions) for _ in range(count)]
    return {"partitions": places[:1] * count if chance.random() < 0.5 else places, "flush": flush, "key": key}


def _send(client: RecordProducer, fields: Fields) -> None:
    client.send(client.options["topic"], fields["partitions"], key=fields.get("key"))
    if fields.get("flush"):
        client.flush()


def _end(client: RecordProducer, fields: Fields) -> None:
    client.end(commit=fields["commit"], flush=fields["flush"])


def _poll(client: Reader, fields: Fields) -> None:
    options = {"max_records": fields["max_records"]} if fields.get("max_records") else {}
    for _ in range(fields["times"]):
        client.poll(**options)


def _polls(chance: Random, _options: Mapping[str, Any], _partitions: int) -> Fields:
    # Mostly all that has come; else one record, so that others wait in the library while something happens.
    return {"times": chance.choice((1, 2, 4)), "max_records": chance.choice((None, None, 1))}


def _share(client: Sharer, fields: Fields) -> None:
    client.share(fields["type"], commit=fields["commit"])


def _create(client: Administrator, fields: Fields) -> None:
    client.create(fields["new_topic"], fields["partitions"])


def _seek(client: Reader, fields: Fields) -> None:
    client.seek(fields["partition"], fields["offset"])


def _restart(client: Client, fields: Fields) -> None:
    if fields["close"]:
        client.close()
    else:
        client.abandon()
    if not isinstance(client, Copier):
        client.opened()


def _nothing(_chance: Random, _options: Mapping[str, Any], _partitions: int) -> Fields:
    return {}


def _idle(_client: Client, fields: Fields) -> None:
    time.sleep(fields["ms"] / 1000)


# Weights and shares are ours: mostly what programs do all the time, seldom what ends them; few values of each field, so
# that a schedule meets the same again.
STEPS: Final = (
    Line("send", 10, PRODUCERS, _records, _send),
    Line("flush", 4, PRODUCERS, _nothing, lambda client, _fields: client.flush()),
    Line("end", 6, ("transactional",),
         lambda chance, *_: {"commit": chance.random() < 0.75, "flush": chance.random() < 0.5}, _end),
    Line("poll", 10, READERS, _polls, _poll),
    Line("commit offsets", 5, ("member",), _nothing, lambda client, _fields: client.commit()),
    Line("seek", 3, ("reader",),
         lambda chance, _options, partitions: {
             "partition": chance.randrange(partitions), "offset": chance.choice((0, 0, 1, 3, 8)),
         }, _seek),
    Line("copy", 8, ("copier",), _nothing, lambda client, _fields: client.copy()),
    Line("share", 14, ("sharer",),
         lambda chance, *_: {"type": chance.choice(ACKNOWLEDGED), "commit": chance.random() < 0.7}, _share),
    Line("share and close", 3, ("sharer",), _nothing, lambda client, _fields: client.leave()),
    Line("create topic", 8, ("admin",),
         lambda chance, *_: {"new_topic": f"made-{chance.randrange(3)}", "partitions": chance.randrange(1, 5)},
         _create),
    Line("close", 2, ALL, _nothing, lambda client, _fields: client.close()),
    Line("restart", 2, ALL, lambda chance, *_: {"close": chance.random() < 0.6}, _restart),
    Line("idle", 1, ALL, lambda chance, *_: {"ms": chance.choice((100, 400, 1_000))}, _idle),
)  # fmt: skip
KILL: Final = "application killed"
"""The step in which the driver's process is killed and started again, with all its clients."""
BY_NAME: Final = {line.name: line for line in STEPS}
