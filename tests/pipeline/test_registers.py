"""Values that are written and reported: which of them an answer may have."""

from typing import Any

import pytest

from pipeline.answers import facts
from pipeline.answers.calls import Call
from pipeline.answers.registers import ANY, LAG_US, Registers

KEY = ("setting", "2", "orders", "retention.ms")
SECOND = 1_000_000


def faults_of(values: Registers) -> list[tuple[int, str]]:
    """Ids of the answers that are wrong, and why."""
    return [(each.id, each.what.removeprefix(f"{' '.join(KEY)} ")) for each in values.faults()]


def read(values: Registers, number: int, value: str | None, at_s: float, broker: int = 1) -> None:
    """An answer that takes a millisecond."""
    at_us = int(at_s * SECOND)
    values.read(KEY, value, (at_us, at_us + 1000), broker, number)


def written(value: object, at_s: float, *, certain: bool = True) -> Registers:
    """A value that was 1 before the journal, and is written once."""
    values = Registers()
    read(values, 0, "1", 1)
    values.write(KEY, value, int(at_s * SECOND), int(at_s * SECOND) + 1000, certain=certain)
    return values


def test_an_answer_may_be_late_but_not_for_long() -> None:
    """Brokers learn of a change from the metadata log."""
    values = written("2", 10)
    read(values, 1, "1", 10 + LAG_US / SECOND / 2)
    read(values, 2, "1", 11 + LAG_US / SECOND)
    read(values, 3, "2", 12 + LAG_US / SECOND)
    assert faults_of(values) == [(2, "is 1, not 2")]


def test_a_broker_does_not_go_back() -> None:
    """Not within that time either; another broker may still be behind."""
    values = written("2", 10)
    read(values, 1, "2", 11)
    read(values, 2, "1", 12)
    read(values, 3, "1", 12, broker=2)
    assert faults_of(values) == [(2, "goes back to an older value")]


def test_what_was_made_is_what_its_first_answer_reports() -> None:
    """Where the request left the value to the broker, as a topic's id; however soon the answer comes."""
    values = Registers()
    values.begin(KEY, ANY, 10 * SECOND, 10 * SECOND + 1000)
    for number, value in enumerate(("a", "a", "b"), 1):
        read(values, number, value, 10 + number / 10)
    assert faults_of(values) == [(3, "is b, not a")]


def test_a_value_that_no_client_wrote_is_wrong_at_once() -> None:
    """Also within the time that an answer may be late."""
    values = written("2", 10)
    read(values, 1, "7", 10.5)
    assert faults_of(values) == [(1, "is 7, not 1 or 2")]


def test_a_write_without_an_answer_may_take_effect_at_any_time() -> None:
    """Both values are right for ever, and no third one."""
    values = written("2", 10, certain=False)
    read(values, 1, "1", 100)
    read(values, 2, "2", 200)
    read(values, 3, "3", 300)
    assert faults_of(values) == [(3, "is 3, not 1 or 2")]


def test_what_the_journal_does_not_show_is_learned_from_the_first_answer() -> None:
    """After a change whose result is unknown, the answers agree with each other."""
    values = written(ANY, 10)
    read(values, 1, "5", 100)
    read(values, 2, "5", 101)
    read(values, 3, "6", 102)
    assert faults_of(values) == [(3, "is 6, not 5")]


def test_after_a_reset_nothing_is_known() -> None:
    """Of all values whose key begins so."""
    values = written("2", 10)
    values.reset(KEY[:3], 20 * SECOND)
    read(values, 1, "9", 100)
    assert faults_of(values) == []


def test_what_was_made_now_had_no_value_before() -> None:
    """The first answer cannot be about an earlier life."""
    values = Registers()
    values.begin(KEY, "2", 10 * SECOND, 10 * SECOND + 1000)
    read(values, 1, "1", 11)
    assert faults_of(values) == [(1, "is 1, not 2")]


TOPIC_ID = "LiYnCOdmRjSHC2j8QOP_kQ"


def answered(number: int, api: str, version: int, request: dict[str, Any], response: dict[str, Any]) -> Call:
    """A call of the second of its number, which was answered without an error."""
    at_us = number * SECOND
    return Call(
        "run", 0, number, at_us, at_us + 1000, number * 1000, None, 1, "", 1, None, None, api, version, True, None,
        request, response,
    )  # fmt: skip


def committed(number: int, offset: int, *, by_id: bool) -> Call:
    """OffsetCommit of partition 0 of `orders`."""
    topic = {"topic_id": TOPIC_ID} if by_id else {"name": "orders"}
    part = {"partition_index": 0, "committed_offset": offset, "committed_leader_epoch": -1, "committed_metadata": ""}
    request = {"group_id": "g", "topics": [{**topic, "partitions": [part]}]}
    got = {"topics": [{**topic, "partitions": [{"partition_index": 0, "error_code": "NONE"}]}]}
    return answered(number, "OffsetCommit", 10 if by_id else 9, request, got)


def fetched(number: int, offset: int | None, *, by_id: bool, is_whole: bool = False) -> Call:
    """OffsetFetch, of all topics or of this one; None: it has no offset."""
    topic = {"topic_id": TOPIC_ID} if by_id else {"name": "orders"}
    part = {"partition_index": 0, "committed_offset": offset, "committed_leader_epoch": -1, "metadata": "",
            "error_code": "NONE"}  # fmt: skip
    topics = [] if offset is None else [{**topic, "partitions": [part]}]
    request = {"groups": [{"group_id": "g", "topics": None if is_whole else [{**topic, "partition_indexes": [0]}]}]}
    got = {"groups": [{"group_id": "g", "error_code": "NONE", "topics": topics}]}
    return answered(number, "OffsetFetch", 10 if by_id else 9, request, got)


@pytest.mark.parametrize("by_id", [True, False])
@pytest.mark.parametrize("is_whole", [True, False])
def test_an_offset_is_the_same_by_the_name_and_by_the_id_of_its_topic(by_id: bool, is_whole: bool) -> None:
    """Consumers of Kafka 4.1 commit by id, their administrators list and reset by name."""
    partition = {"partition_index": 0, "leader_id": 1, "leader_epoch": 0, "replica_nodes": [1]}
    topic = {"error_code": "NONE", "name": "orders", "topic_id": TOPIC_ID, "partitions": [partition]}
    values = Registers()
    for call in (
        answered(1, "Metadata", 13, {"topics": []}, {"topics": [topic], "brokers": []}),
        committed(2, 5, by_id=by_id),
        fetched(3, 5, by_id=not by_id, is_whole=is_whole),
        committed(4, 7, by_id=not by_id),
        fetched(5, 7, by_id=by_id, is_whole=is_whole),
        fetched(6, 5, by_id=not by_id, is_whole=is_whole),
    ):
        facts.note(call, values)
    assert [(each.id, each.what) for each in values.faults()] == [
        (6, 'committed offset g orders-0 is [5, -1, ""], not [7, -1, ""]')
    ]
    if is_whole:
        facts.note(fetched(7, None, by_id=by_id, is_whole=True), values)
        assert [each.id for each in values.faults()] == [6, 7]
