"""Faults of clients and brokers that a journal shows: the plants' registry, and traffic that is in order.

A plant gets a journal in the making and a name of its own for topic, transactional id, group and client; it returns the
id of the request that its check has to point at. The plants are in `journal_fault_cases` and `invariant_fault_cases`.
"""

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from protocol.log_records.transaction import TransactionState as State
from tests.pipeline.fault_files import Planting
from tests.pipeline.journal_lines import Wiring, assignment

WirePlant = Callable[[Wiring, str], int]
PLANTS: dict[str, WirePlant] = {}
ANSWERS: dict[str, tuple[str, WirePlant]] = {}
"""Wrong answers of a broker: name -> the check that has to find it, and the plant."""


_CASES = (
    "journal_fault_cases", "invariant_fault_cases", "broker_answer_cases", "broker_value_cases", "group_answer_cases",
    "refusal_cases", "transaction_report_cases", "bound_fault_cases",
)  # fmt: skip


ALSO: Mapping[str, tuple[str, ...]] = {
    "commit-reported-as-abort": ("transaction-answer",),
    "coordinator-without-a-node": ("answer-value",),
    "member-unknown-for-once": ("generation-answer",),
    "transaction-of-another-timeout": ("answer-value",),
    "transaction-over-with-partitions": ("transaction-answer",),
    "transaction-reported-prepared": ("transaction-answer",),
    "transaction-reported-without-a-partition": ("transaction-answer",),
    "assigned-twice": ("answer-items", "answer-place"),
    "fetch-with-another-replica": ("metadata-differs",),
    "group-twice": ("answer-items",),
    "metadata-partition-twice": ("answer-items",),
    "partition-of-no-topic": ("answer-place",),
    "task-active-and-standby": ("assignment-answer",),
    "topic-id-changed": ("answer-contradicted",),
    "transaction-listed-twice": ("answer-items",),
    "versions-twice": ("answer-items",),
}
"""Further checks that find a wrong answer: general ones, beside that of its API."""


class FoundCall(NamedTuple):
    """What an audit of the journal has to point at."""

    check: str
    id: int


def plant(check: str) -> Callable[[WirePlant], WirePlant]:
    """Register a plant for a check."""

    def register(make: WirePlant) -> WirePlant:
        PLANTS[check] = make
        return make

    return register


def answer(check: str) -> Callable[[WirePlant], WirePlant]:
    """Register a wrong answer under its function's name."""

    def register(make: WirePlant) -> WirePlant:
        ANSWERS[make.__name__.replace("_", "-")] = (check, make)
        return make

    return register


def plants() -> Mapping[str, WirePlant]:
    """All of them by check."""
    for module in _CASES:
        importlib.import_module(f"tests.pipeline.{module}")
    return PLANTS


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


def planted(root: Path, journal: Path, *names: str) -> set[FoundCall]:
    """Write a directory and its journal with some plants (default: all), and answer what has to be found."""
    where = Planting(root)
    wiring = Wiring(where)
    expected = clean(wiring) | {FoundCall(name, plants()[name](wiring, name)) for name in names or plants()}
    if not names:
        for name, (check, make) in ANSWERS.items():
            number = make(wiring, name)
            expected |= {FoundCall(each, number) for each in (check, *ALSO.get(name, ()))}
    where.close()
    wiring.write(journal)
    return expected
