"""Answers that contradict an earlier one or the logs: each is found, and its right neighbour is not."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from protocol.log_records.transaction import TransactionState as State
from tests.pipeline.audited import findings_of
from tests.pipeline.fault_files import Planting
from tests.pipeline.journal_lines import Wiring
from tests.pipeline.planted_client import Client

OK: Final = {"error_code": "NONE"}
Plant = Callable[[Client, bool], tuple[int, ...] | int]


def _with_partitions(c: Client, count: int) -> int:
    """Its topic has so many partitions, with a record each."""
    return sum(c.where.shelf(c.name, number).data(1) for number in range(count))


def _created(c: Client) -> int:
    topic: dict[str, Any] = {"name": c.name, "num_partitions": 3, "replication_factor": 1, "configs": []}
    got = {**topic, **OK, "topic_id": c.topic_id, "error_message": None}
    request = {"topics": [{**topic, "assignments": []}], "validate_only": False}
    return c.call("CreateTopics", request, {"topics": [got]}, 7)


def _deleted(c: Client) -> int:
    got = {"name": c.name, "topic_id": c.topic_id, **OK, "error_message": None}
    return c.call("DeleteTopics", {"topics": [{"name": c.name, "topic_id": None}]}, {"responses": [got]}, 6)


def _partitions_added(c: Client, count: int) -> int:
    request = {"topics": [{"name": c.name, "count": count, "assignments": None}], "validate_only": False}
    return c.call("CreatePartitions", request, {"results": [{"name": c.name, **OK, "error_message": None}]}, 3)


def _transaction_of_old(c: Client, turn: int, *, committed: bool, answered: bool) -> int:
    """A transaction of a client before KIP-890: what became of it, and what EndTxn had asked for."""
    c.add()
    c.coordinator(State.ONGOING, version=0)
    c.append(3 * turn, named=True, version=11)
    c.mark(committed=committed)
    c.coordinator(State.COMPLETE_COMMIT if committed else State.COMPLETE_ABORT, version=0)
    return c.end(committed=answered)


def _commit_for_partition_7(c: Client, error: str) -> int:
    request = {"group_id": c.name, "generation_id_or_member_epoch": 3, "member_id": c.name}
    topics, answers = (
        [{"name": c.name, "topic_id": None, "partitions": [{"partition_index": 7, **fields}]}]
        for fields in ({"committed_offset": 2}, {"error_code": error})
    )
    return c.call("OffsetCommit", request | {"topics": topics}, {"topics": answers})


PLANTS: Final[Mapping[str, tuple[str, Plant]]] = {
    # the right one joins again, by the same id as no broker would give it, before it commits
    "commit-of-a-member-that-left": ("generation-answer", lambda c, wrong: (
        c.write(9), c.join(3), c.sync(3, 0), c.fetch(0, (0, 8)), c.leave(),
        c.commit(5, 3) if wrong else (c.join(4), c.commit(5, 4))[-1])),
    # the right one is refused the second time
    "member-that-left-twice": ("generation-answer", lambda c, wrong: (
        c.join(3), c.leave(), c.leave(error="NONE" if wrong else "UNKNOWN_MEMBER_ID"))),
    # the right group was left by its member between
    "generation-back-for-another-member": ("join-answer", lambda c, wrong: (
        c.join(3), 0 if wrong else c.leave(), c.second.join(2, "other", sent_id=""))),
    # the right one was deleted between
    "topic-created-twice": ("answer-contradicted", lambda c, wrong: (
        _with_partitions(c, 3), _created(c), 0 if wrong else _deleted(c), _created(c))),
    # the right one adds a partition
    "fewer-partitions-accepted": ("answer-contradicted", lambda c, wrong: (
        _with_partitions(c, 3 if wrong else 4), _created(c), _partitions_added(c, 2 if wrong else 4))),
    # EndTxn of version 5 was answered with the epoch of the marker
    "commit-that-became-an-abort": ("end-answer", lambda c, wrong: (
        c.init(), c.append(0, named=True), c.coordinator(State.ONGOING), c.mark(committed=not wrong, epoch=1),
        c.coordinator(State.COMPLETE_ABORT if wrong else State.COMPLETE_COMMIT, 1), c.end(granted=1))),
    # before version 5, in an epoch of one transaction; the right epoch has one of each kind
    "abort-that-became-a-commit-of-old": ("end-answer", lambda c, wrong: (
        c.init(), *(_transaction_of_old(c, turn, committed=committed, answered=committed != wrong)
                    for turn, committed in enumerate([True] if wrong else [True, False])))),
    # the right one has the new epoch
    "partition-added-by-a-fenced-producer": ("end-answer", lambda c, wrong: (
        c.write(1), c.init(0), c.init(1), c.add(epoch=0 if wrong else 1))),
    # the check names the refusal; the right connection is another one
    "answer-behind-a-failed-authentication": ("verdict-withdrawn", lambda c, wrong: (
        c.call("SaslHandshake", {"mechanism": "PLAIN"}, {**OK, "mechanisms": ["PLAIN"]}, 1),
        c.call("SaslAuthenticate", {}, {"error_code": "SASL_AUTHENTICATION_FAILED", "session_lifetime_ms": 0}),
        (c if wrong else c.second).call("Metadata", {}, {"topics": []}))[1]),
    # the topic has one partition; the right answer is an error
    "commit-for-a-partition-that-is-not-there": ("answer-place", lambda c, wrong: (
        c.write(9), c.join(3), _commit_for_partition_7(c, "NONE" if wrong else "UNKNOWN_TOPIC_OR_PARTITION"))),
    # from behind the end, instead of OFFSET_OUT_OF_RANGE; the end itself is right
    "fetch-from-beyond-the-end": ("bound-answer", lambda c, wrong: (c.write(), c.fetch(9 if wrong else 3, stable=3))),
    # the right one reads uncommitted records
    "stable-offset-within-the-first-batch": ("fetch-answer", lambda c, wrong: (
        c.write(), c.fetch(0, (0, 2), stable=3, committed=wrong, answer={"last_stable_offset": 1}))),
    # the right one became stable while the broker read: a later response has it below the last stable offset
    "batch-beyond-the-stable-offset": ("fetch-answer", lambda c, wrong: (
        c.write(), c.write(), c.fetch(0, (0, 2), (3, 5), stable=6, committed=True, answer={"last_stable_offset": 3}),
        0 if wrong else c.fetch(6, stable=6, committed=True))[2]),
}  # fmt: skip
"""Name -> the check that finds it, and the requests, wrong or right; the last one, or the one picked, is where."""


def test_each_is_found_and_its_right_neighbour_is_not(tmp_path: Path) -> None:
    """Under the name of its check, at the request whose answer is wrong."""
    where = Planting(tmp_path / "data")
    wiring = Wiring(where)
    wanted = set()
    for producer, (name, (check, make)) in enumerate(PLANTS.items(), start=610):
        numbers = make(Client(wiring, name, producer), True)
        wanted.add((check, numbers if isinstance(numbers, int) else numbers[-1]))
        make(Client(wiring, f"{name}-right", producer + 100), False)
    where.close()
    checks = sorted({check for check, _ in PLANTS.values()})
    findings = findings_of(tmp_path / "data", *checks, journal=wiring.write(tmp_path / "journal"))
    assert {(each.check.name, row["id"]) for each in findings for row in each.rows} == wanted
