"""Faults of clients and brokers that a journal shows: the plants' registry, and traffic that is in order.

The plants are the rows of `client_fault_cases` and `answer_fault_cases`; each has a topic, a transactional id, a group
and a producer of its own.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from protocol.log_records.transaction import TransactionState as State
from tests.pipeline.answer_fault_cases import ANSWERS
from tests.pipeline.client_fault_cases import PLANTS, Requests
from tests.pipeline.fault_files import Planting
from tests.pipeline.journal_lines import Wiring, assignment
from tests.pipeline.planted_client import Client

ROWS: Final[Mapping[str, tuple[str, Requests]]] = {
    **{name: (name, requests) for name, requests in PLANTS.items()}, **ANSWERS,
}  # fmt: skip
"""Name of a plant -> the checks that find it, and its requests."""
_FIRST_PRODUCER: Final = 1000


class FoundCall(NamedTuple):
    """What an audit of the journal has to point at."""

    check: str
    id: int


def clean(wiring: Wiring) -> set[FoundCall]:
    """Traffic in order, and what an audit finds in it all the same.

    A transactional producer of each protocol, a retry, groups that read committed.
    """
    log = wiring.where.shelf("wire-clean")
    old, new = wiring.connect("old"), wiring.connect("new")
    old.init("wire-old", (900, 0))
    for turn in range(2):
        old.add("wire-old", (900, 0), "wire-clean", 0)
        old.append(log, who=(900, 0), sequence=3 * turn, name="wire-old", version=11)
        log.marker(900, 0, committed=True)
        old.end("wire-old", (900, 0))
    wiring.where.transaction("wire-old", 900, 0, State.ONGOING, [("wire-clean", 0)], version=0)
    wiring.where.transaction("wire-old", 900, 0, State.COMPLETE_COMMIT, version=0)
    new.init("wire-new", (901, 0))
    wiring.where.transaction("wire-new", 901, 0, State.ONGOING, [("wire-clean", 0)])
    first = log.next_offset
    new.produce("wire-clean", who=(901, 0), sequence=0, name="wire-new", error="NOT_ENOUGH_REPLICAS")
    new.append(log, who=(901, 0), sequence=0, name="wire-new")
    stop = log.marker(901, 1, committed=False)
    wiring.where.transaction("wire-new", 901, 1, State.COMPLETE_ABORT)
    new.end("wire-new", (901, 0), committed=False, granted=(901, 1), version=5)
    reader = wiring.connect("reader")
    reader.join("wire-group", "reader-1", 1, sent_id="")
    reader.sync("wire-group", "reader-1", 1, {"reader-1": assignment("wire-clean", 0)})
    reader.heartbeat("wire-group", "reader-1", 1)
    reader.fetch("wire-clean", 0, [(0, 2), (3, 3)], producer=900, committed=True, stable=log.next_offset)
    reader.commit("wire-group", "reader-1", 1, "wire-clean", 4)
    reader.fetch("wire-clean", 4, [(4, 6), (7, 7)], producer=900, committed=True, stable=log.next_offset)
    reader.fetch(
        "wire-clean", 8, [(first, first + 2)], producer=901, committed=True, aborted=[(901, first)], stable=stop + 1
    )
    reader.commit("wire-group", "reader-1", 1, "wire-clean", 8)
    reader.join("wire-group", "reader-1", 2)
    reader.sync("wire-group", "reader-1", 2, {"reader-1": assignment("wire-clean", 1)})
    reader.commit("wire-group", "reader-1", 2, "wire-clean", 8)  # as its cooperative consumer gives the partition up
    return clean_of_aborted_offsets(wiring)


def clean_of_aborted_offsets(wiring: Wiring) -> set[FoundCall]:
    """Offsets of an aborted transaction never count, so their records are read again; those of a committed one do."""
    wire = wiring.connect("wire-looper")
    wire.init("wire-looper", (902, 0))
    wire.join("wire-loops", "looper-1", 1)
    wire.fetch("wire-clean", 0, [(0, 2)], producer=900)
    wire.commit_in_transaction("wire-looper", (902, 0), "wire-loops", "looper-1", 1, "wire-clean", 3)
    wire.end("wire-looper", (902, 0), committed=False, granted=(902, 1), version=5)
    again = wire.fetch("wire-clean", 0, [(0, 2)], producer=900)
    wire.commit_in_transaction("wire-looper", (902, 1), "wire-loops", "looper-1", 1, "wire-clean", 2)
    wire.end("wire-looper", (902, 1), granted=(902, 2), version=5)
    twice = wire.fetch("wire-clean", 0, [(0, 2)], producer=900)
    gap = wiring.connect("wire-unanswered")  # what was not answered may have been written
    gap.produce("wire-unanswered", who=(903, 0), sequence=0, offset=0)
    gap.produce("wire-unanswered", who=(903, 0), sequence=3, outcome="never answered")
    gap.produce("wire-unanswered", who=(903, 0), sequence=6, offset=6)
    return {FoundCall("redelivered", again), FoundCall("delivered-twice", twice)}


def sent(wiring: Wiring, name: str, producer: int = _FIRST_PRODUCER) -> int:
    """Have a plant in the journal; the id of the request that an audit has to point at."""
    numbers = ROWS[name][1](Client(wiring, name, producer))
    return numbers if isinstance(numbers, int) else numbers[-1]


def planted(root: Path, journal: Path, *names: str) -> set[FoundCall]:
    """Write a directory and its journal with some plants (default: all), and answer what has to be found."""
    where = Planting(root)
    wiring = Wiring(where)
    expected = clean(wiring)
    for producer, name in enumerate(names or ROWS, start=_FIRST_PRODUCER):
        number = sent(wiring, name, producer)
        expected |= {FoundCall(check, number) for check in ROWS[name][0].split()}
    where.close()
    wiring.write(journal)
    return expected
