"""Answers that contradict an earlier one or the logs: each is found, and its right neighbour is not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pipeline.audits.findings import ask_all
from pipeline.audits.registry import chosen
from pipeline.duck.tables import DuckTables
from protocol.log_records.transaction import TransactionState as State
from protocol.types import uuid_text
from tests.pipeline.fault_files import Planting, topic_id_of
from tests.pipeline.journal_lines import Wire, Wiring, assignment

Plant = Callable[[Wiring, str, bool], int]
PLANTS: Final[dict[str, tuple[str, Plant]]] = {}
"""Name -> the check that finds it, and what writes the requests, wrong or right; it returns the last one's id."""


def plant(check: str) -> Callable[[Plant], Plant]:
    """Register a plant under its function's name."""

    def register(make: Plant) -> Plant:
        PLANTS[make.__name__.replace("_", "-")] = check, make
        return make

    return register


def _left(wire: Wire, group: str) -> int:
    members = [{"member_id": group, "group_instance_id": None}]
    answer = {"error_code": "NONE", "members": [{**members[0], "error_code": "NONE"}]}
    return wire.call("LeaveGroup", {"group_id": group, "members": members}, answer, version=4)


def _joined(wire: Wire, group: str, generation: int = 3, member: str | None = None) -> int:
    return wire.join(group, member or group, generation, sent_id="" if member is None else None)


@plant("generation-answer")
def commit_of_a_member_that_left(wiring: Wiring, name: str, is_wrong: bool) -> int:
    """The right one joins again, by the same id as no broker would give it, before it commits."""
    wiring.where.shelf(name).data(9)
    wire = wiring.connect(name)
    _joined(wire, name)
    wire.sync(name, name, 3, {name: assignment(name, 0)})
    wire.fetch(name, 0, [(0, 8)])
    _left(wire, name)
    if not is_wrong:
        _joined(wire, name, 4)
    return wire.commit(name, name, 3 if is_wrong else 4, name, 5)


@plant("generation-answer")
def member_that_left_twice(wiring: Wiring, name: str, is_wrong: bool) -> int:
    """The right one is refused the second time."""
    wire = wiring.connect(name)
    _joined(wire, name)
    _left(wire, name)
    last = _left(wire, name)
    if not is_wrong:
        wiring.lines[-1]["response"]["members"][0]["error_code"] = "UNKNOWN_MEMBER_ID"
    return last


@plant("join-answer")
def generation_back_for_another_member(wiring: Wiring, name: str, is_wrong: bool) -> int:
    """The right group was left by its member between."""
    one, two = wiring.connect(name), wiring.connect(name)
    _joined(one, name, 3)
    if not is_wrong:
        _left(one, name)
    return two.join(name, "other", 2, sent_id="")


@plant("answer-contradicted")
def topic_created_twice(wiring: Wiring, name: str, is_wrong: bool) -> int:
    """The right one was deleted between."""
    for number in range(3):
        wiring.where.shelf(name, number).data(1)
    wire = wiring.connect(name)
    _created(wire, name)
    if not is_wrong:
        answer = {"name": name, "topic_id": uuid_text(topic_id_of(name)), "error_code": "NONE", "error_message": None}
        wire.call("DeleteTopics", {"topics": [{"name": name, "topic_id": None}]}, {"responses": [answer]}, version=6)
    return _created(wire, name)


def _created(wire: Wire, name: str) -> int:
    requested_topic = {"name": name, "num_partitions": 3, "replication_factor": 1, "assignments": [], "configs": []}
    got: dict[str, Any] = {
           "name": name, "topic_id": uuid_text(topic_id_of(name)), "error_code": "NONE", "error_message": None,
           "num_partitions": 3, "replication_factor": 1, "configs": []}  # fmt: skip
    return wire.call(
        "CreateTopics", {"topics": [requested_topic], "validate_only": False}, {"topics": [got]}, version=7
    )


@plant("answer-contradicted")
def fewer_partitions_accepted(wiring: Wiring, name: str, is_wrong: bool) -> int:
    """The right one adds a partition."""
    for number in range(3 if is_wrong else 4):
        wiring.where.shelf(name, number).data(1)
    wire = wiring.connect(name)
    _created(wire, name)
    request = {"topics": [{"name": name, "count": 2 if is_wrong else 4, "assignments": None}], "validate_only": False}
    got = {"results": [{"name": name, "error_code": "NONE", "error_message": None}]}
    return wire.call("CreatePartitions", request, got, version=3)


@plant("end-answer")
def commit_that_became_an_abort(wiring: Wiring, name: str, is_wrong: bool) -> int:
    """EndTxn of version 5 was answered with the epoch of the marker."""
    producer = 610 + is_wrong
    log, wire = wiring.where.shelf(name), wiring.connect(name)
    wire.init(name, (producer, 0))
    wire.append(log, who=(producer, 0), name=name)
    wiring.where.transaction(name, producer, 0, State.ONGOING, [(name, 0)])
    log.marker(producer, 1, committed=not is_wrong)
    wiring.where.transaction(name, producer, 1, State.COMPLETE_ABORT if is_wrong else State.COMPLETE_COMMIT)
    return wire.end(name, (producer, 0), granted=(producer, 1), version=5)


@plant("end-answer")
def abort_that_became_a_commit_of_old(wiring: Wiring, name: str, is_wrong: bool) -> int:
    """Before version 5, in an epoch of one transaction; the right epoch has one of each kind."""
    producer = 612 + is_wrong
    log, wire = wiring.where.shelf(name), wiring.connect(name)
    wire.init(name, (producer, 0))
    last = 0
    for turn, committed in enumerate([True] if is_wrong else [True, False]):
        wire.add(name, (producer, 0), name, 0)
        wiring.where.transaction(name, producer, 0, State.ONGOING, [(name, 0)], version=0)
        wire.append(log, who=(producer, 0), sequence=3 * turn, name=name, version=11)
        log.marker(producer, 0, committed=committed)
        ended = State.COMPLETE_COMMIT if committed else State.COMPLETE_ABORT
        wiring.where.transaction(name, producer, 0, ended, version=0)
        last = wire.end(name, (producer, 0), committed=committed != is_wrong)
    return last


@plant("end-answer")
def partition_added_by_a_fenced_producer(wiring: Wiring, name: str, is_wrong: bool) -> int:
    """The right one has the new epoch."""
    producer = 614 + is_wrong
    wiring.where.shelf(name).data(1)
    wire = wiring.connect(name)
    for epoch in (0, 1):
        wire.init(name, (producer, epoch))
    return wire.add(name, (producer, 0 if is_wrong else 1), name, 0)


@plant("verdict-withdrawn")
def answer_behind_a_failed_authentication(wiring: Wiring, name: str, is_wrong: bool) -> int:
    """The check names the refusal; the right connection is another one."""
    wire = wiring.connect(name)
    wire.call("SaslHandshake", {"mechanism": "PLAIN"}, {"error_code": "NONE", "mechanisms": ["PLAIN"]}, version=1)
    refused = wire.call("SaslAuthenticate", {}, {"error_code": "SASL_AUTHENTICATION_FAILED", "session_lifetime_ms": 0})
    (wire if is_wrong else wiring.connect(name)).call("Metadata", {}, {"topics": []})
    return refused


@plant("answer-place")
def commit_for_a_partition_that_is_not_there(wiring: Wiring, name: str, is_wrong: bool) -> int:
    """The topic has one partition; the right answer is an error."""
    wiring.where.shelf(name).data(9)
    wire = wiring.connect(name)
    _joined(wire, name)
    request: dict[str, Any] = {"group_id": name, "generation_id_or_member_epoch": 3, "member_id": name}
    parts = [{"partition_index": 7, "committed_offset": 2}]
    error = "NONE" if is_wrong else "UNKNOWN_TOPIC_OR_PARTITION"
    got: Any = {
        "topics": [{"name": name, "topic_id": None, "partitions": [{"partition_index": 7, "error_code": error}]}]
    }
    topics = [{"name": name, "topic_id": None, "partitions": parts}]
    return wire.call("OffsetCommit", request | {"topics": topics}, got)


@plant("bound-answer")
def fetch_from_beyond_the_end(wiring: Wiring, name: str, is_wrong: bool) -> int:
    """From behind the end, instead of OFFSET_OUT_OF_RANGE; the end itself is right."""
    wiring.where.shelf(name).data(3)
    return wiring.connect(name).fetch(name, 9 if is_wrong else 3, stable=3)


def _stable_to(wiring: Wiring, number: int, offset: int) -> int:
    wiring.lines[number - 1]["response"]["responses"][0]["partitions"][0]["last_stable_offset"] = offset
    return number


@plant("fetch-answer")
def stable_offset_within_the_first_batch(wiring: Wiring, name: str, is_wrong: bool) -> int:
    """The right one reads uncommitted records."""
    wiring.where.shelf(name).data(3)
    return _stable_to(wiring, wiring.connect(name).fetch(name, 0, [(0, 2)], stable=3, committed=is_wrong), 1)


@plant("fetch-answer")
def batch_beyond_the_stable_offset(wiring: Wiring, name: str, is_wrong: bool) -> int:
    """The right one became stable while the broker read: a later response has it below the last stable offset."""
    log, wire = wiring.where.shelf(name), wiring.connect(name)
    for _ in range(2):
        log.data(3)
    number = _stable_to(wiring, wire.fetch(name, 0, [(0, 2), (3, 5)], stable=6, committed=True), 3)
    if not is_wrong:
        wire.fetch(name, 6, stable=6, committed=True)
    return number


def test_each_is_found_and_its_right_neighbour_is_not(tmp_path: Path) -> None:
    """Under the name of its check, at the request whose answer is wrong."""
    where = Planting(tmp_path / "data")
    wiring = Wiring(where)
    wanted = {(check, make(wiring, name, True)) for name, (check, make) in PLANTS.items()}
    for name, (_, make) in PLANTS.items():
        make(wiring, f"{name}-right", False)
    where.close()
    tables = DuckTables(str(tmp_path / "data"), str(wiring.write(tmp_path / "journal")))
    tables.register()
    checks = chosen(sorted({check for check, _ in PLANTS.values()}), has=["journal"])
    reported = {(each.check.name, row["id"]) for each in ask_all(tables.engine, checks) for row in each.rows}
    tables.forget()
    assert reported == wanted
