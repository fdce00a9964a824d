"""Rules of one answer: what a real broker answers is no fault, and what none answers is one."""

import re
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pipeline.answers import group_lists
from pipeline.answers.generations import Generations
from pipeline.answers.members import Groups
from pipeline.answers.refusals import OF_ANY_REQUEST
from pipeline.answers.rules import _settings
from pipeline.answers.shapes import faults_of
from pipeline.answers.share import ACCEPT, ShareGroups
from pipeline.answers.transactions import Transactions
from pipeline.audits.registry import checks
from protocol.api_errors import ERRORS_OF
from tests.pipeline.test_registers import TOPIC_ID, answered

TOPIC, DYNAMIC_DEFAULT_BROKER, STATIC_BROKER, DEFAULT = 1, 3, 4, 5


@pytest.mark.parametrize(
    ("source", "first", "count"),
    [(TOPIC, TOPIC, 1), (DEFAULT, STATIC_BROKER, 1), (DYNAMIC_DEFAULT_BROKER, DYNAMIC_DEFAULT_BROKER, 0)],
)
def test_a_topics_value_is_that_of_its_first_synonym(source: int, first: int, count: int) -> None:
    """But where the broker's own setting has just changed: Kafka 4.4.0 answered so, once."""
    synonym = {"name": "message.max.bytes", "value": "1048600", "source": first}
    config = {
        "name": "max.message.bytes",
        "value": "1048588",
        "config_source": source,
        "is_sensitive": False,
        "synonyms": [synonym],
    }
    result = {"resource_type": 2, "resource_name": "t", "configs": [config]}
    call = SimpleNamespace(request={"include_synonyms": True}, response={"results": [result]})
    assert len(list(_settings(cast("Any", call)))) == count


@pytest.mark.parametrize(
    ("elements", "count"),
    [
        ([{"name": "a", "parts": [1, 2]}, {"parts": [1, 2], "name": "a"}], 1),
        ([{"name": "a", "parts": [1, 2]}, {"name": "a", "parts": [1, 3]}], 0),
        ([[1, 2], [1, 3]], 0),
        ([[1, 2], [1, 2]], 1),
        ([1, True], 0),
        ([7, 7], 1),
    ],
)
def test_a_list_has_no_element_twice(elements: list[object], count: int) -> None:
    """Objects are equal in any order of their fields; elements that differ deep inside are not."""
    call = SimpleNamespace(id=1, api="DescribeGroups", request={}, response={"items": elements})
    assert [each.what for each in faults_of(cast("Any", call))] == ["items has an element twice"] * count


def test_the_query_has_the_errors_of_produce_and_fetch() -> None:
    """As the table of all APIs has them; and those of any request."""
    sql = checks()["answer-error"].sql
    assert set(re.findall(r"[A-Z_]{3,}", " ".join(re.findall(r"'([^']*)'", sql)))) == {
        *ERRORS_OF["Produce"], *ERRORS_OF["Fetch"], *OF_ANY_REQUEST,
    }  # fmt: skip


def shared(number: int, api: str, request: dict[str, Any], **response: Any) -> Any:
    """A ShareFetch or ShareAcknowledge of partition 0."""
    part = {"partition_index": 0, "error_code": "NONE", "acknowledge_error_code": "NONE", **response}
    got = {"error_code": "NONE", "acquisition_lock_timeout_ms": 30000,
           "responses": [{"topic_id": TOPIC_ID, "partitions": [part]}]}  # fmt: skip
    body = {"group_id": "g", "member_id": "m", "share_session_epoch": number - 1,
            "topics": [{"topic_id": TOPIC_ID, "partitions": [{"partition_index": 0, **request}]}]}  # fmt: skip
    return answered(number, api, 1, body, got)


@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize(("acknowledged", "count"), [(150_000, 0), (200_001, 1)])
def test_a_share_group_may_acquire_very_many_records_at_once(small: bool, acknowledged: int, count: int) -> None:
    """A batch that is compressed may have them, and a broker acquires it as a whole."""
    groups = ShareGroups()
    run = {"first_offset": 5, "last_offset": 200_000, "delivery_count": 1}
    runs = [{"first_offset": 0, "last_offset": 4, "delivery_count": 1}, run] if small else [run]
    records = {"base_offset": 0, "last_offset": 200_000}
    ack = {"first_offset": acknowledged, "last_offset": acknowledged, "acknowledge_types": [ACCEPT]}
    for call in (
        shared(1, "ShareFetch", {}, acquired_records=runs, records=records),
        shared(2, "ShareAcknowledge", {"acknowledgement_batches": [ack]}),
    ):
        assert list(groups.note(call)) == []
    assert [each.offset for each in groups.faults()] == [acknowledged] * count


def joined(number: int, protocol: str) -> Any:
    """A JoinGroup of the first generation of `g`."""
    got = {"error_code": "NONE", "generation_id": 1, "protocol_name": protocol, "member_id": f"m{number}"}
    request = {"group_id": "g", "member_id": "", "protocol_type": "consumer"}
    return answered(number, "JoinGroup", 9, request, got)


@pytest.mark.parametrize(("at_s", "is_deleted", "faulty_ids"), [(3, False, [3]), (3, True, []), (700, False, [])])
def test_a_group_that_was_deleted_begins_with_any_protocol(at_s: int, is_deleted: bool, faulty_ids: list[int]) -> None:
    """By an administrator, or by its coordinator ten minutes after its last member left; else a generation has one."""
    generations = Generations()
    deletion = answered(2, "DeleteGroups", 2, {"groups_names": ["g"]}, {"results": []})
    for call in (joined(1, "range"), *([deletion] if is_deleted else []), joined(at_s, "cooperative-sticky")):
        assert list(generations.note(call)) == []
    assert [each.id for each in generations.faults()] == faulty_ids


def of_a_member(number: int, api: str, version: int, generation: int = 1, **answer: Any) -> Any:
    """A call of the member `m` of the group `g`."""
    request = {"group_id": "g", "member_id": "m", "generation_id": generation}
    return answered(number, api, version, request, {"error_code": "NONE", **answer})


def joins(number: int, generation: int) -> Any:
    """A JoinGroup that the member `m` was answered with this generation."""
    return of_a_member(number, "JoinGroup", 9, member_id="m", protocol_name="range", generation_id=generation)


LEAVES = of_a_member(2, "LeaveGroup", 1)


@pytest.mark.parametrize(
    ("calls", "faulty_ids"),
    [
        ([joins(1, 1), LEAVES, of_a_member(3, "Heartbeat", 4)], [3]),
        ([joins(1, 1), of_a_member(2, "Heartbeat", 4), LEAVES], []),
        ([joins(1, 1), LEAVES, joins(3, 3), of_a_member(4, "Heartbeat", 4)], []),
    ],
)
def test_a_member_that_has_left_is_gone(calls: list[Any], faulty_ids: list[int]) -> None:
    """A member that has left is not expected in the group unless it joins again."""
    generations = Generations()
    assert [fault for call in calls for fault in generations.note(call)] == []
    assert [each.id for each in generations.faults()] == faulty_ids


def ends(number: int, version: int, *, committed: bool, epoch: int = 0) -> Any:
    """EndTxn of the transactional id `x`."""
    request = {"transactional_id": "x", "producer_id": 4, "producer_epoch": epoch, "committed": committed}
    return answered(number, "EndTxn", version, request, {"error_code": "NONE", "producer_id": -1, "producer_epoch": -1})


ADDS = answered(
    2, "AddOffsetsToTxn", 3, {"transactional_id": "x", "producer_id": 4, "producer_epoch": 0, "group_id": "g"},
    {"error_code": "NONE"},
)  # fmt: skip


@pytest.mark.parametrize(
    ("calls", "faulty_ids"),
    [
        ([ends(1, 4, committed=True), ends(3, 4, committed=False)], [3]),
        ([ends(1, 4, committed=True), ADDS, ends(3, 4, committed=False)], []),
        ([ends(1, 4, committed=True), ends(3, 4, committed=True)], []),
        ([ends(1, 5, committed=False), ends(3, 5, committed=True)], [3]),
        ([ends(1, 5, committed=False), ends(3, 5, committed=True, epoch=1)], []),
    ],
)
def test_a_transaction_ends_once(calls: list[Any], faulty_ids: list[int]) -> None:
    """A repetition is answered like the first request; the next transaction ends as it likes."""
    transactions = Transactions()
    assert [fault.id for call in calls for fault in transactions.note(call)] == faulty_ids


@pytest.mark.parametrize(("at_s", "is_deleted", "count"), [(5, False, 1), (5, True, 0), (700, False, 0)])
def test_a_group_that_was_deleted_is_in_no_list(at_s: int, is_deleted: bool, count: int) -> None:
    """Though members had it before, and have one of its name afterwards."""
    groups = Groups()
    deletion = answered(2, "DeleteGroups", 2, {"groups_names": ["g"]}, {"results": []})
    listing = answered(3, "ListGroups", 5, {}, {"error_code": "NONE", "groups": []})
    for call in (joined(1, "range"), *([deletion] if is_deleted else []), listing, joined(at_s, "range")):
        assert list(groups.note(call)) == []
    assert len(list(group_lists.faults_of(listing, groups))) == count
