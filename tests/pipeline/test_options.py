"""Options and filters of the data sources: what they mean, and how they are refused."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pipeline.bounds import Condition, limits
from pipeline.options import Options
from pipeline.sources import columns, read, tasks
from pipeline.splits import Split
from tests.pipeline.logs import NOW_MS, chain, rows, write_segment


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("kafka_segments", {"path": "x", "topic": "t"}, "no option 'topic'; did you mean topics?"),
        ("kafka_segments", {"path": "x", "zzz": "t"}, "no option 'zzz'; there are path, paths, mode"),
        ("kafka_batches", {"path": "x", "mode": "ignore"}, "option mode='ignore': fail or report or skip"),
        ("kafka_segments", {"path": "x", "values": "no"}, "option values='no': true or false"),
        ("kafka_segments", {"path": "x", "splitBytes": "0"}, "option splitBytes='0': a number from 1 on"),
        ("kafka_segments", {"path": "x", "topicPattern": "("}, "option topicPattern='('"),
        ("kafka_segments", {"path": "x", "startingOffsets": "now"}, "startingOffsets='now': earliest, latest, a"),
        ("kafka_segments", {}, "no path; use .load(PATH)"),
        ("kafka_segments", {"path": "x", "columns": "sequense"}, "no column 'sequense'"),
        ("kafka_state", {"path": "x"}, "option kind is missing: offsets or groups"),
        ("kafka_state", {"path": "x", "kind": "offsets", "Topics": "t"}, "no option 'Topics': the option kind selects"),
        ("wire_journal", {"path": "x", "topics": "t"}, "no option 'topics'"),
    ],
)  # fmt: skip
def test_meaningless_options_are_refused(source: str, options: dict[str, str], message: str) -> None:
    """In one sentence, with what could have been meant."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the message is compared below
        columns(source, options)
    assert message in str(caught.value)


def test_the_case_of_options_does_not_matter() -> None:
    """Names of options are accepted in any case, as Spark passes them."""
    options = Options("kafka_segments", {"PATH": "x", "includeheaders": "TRUE", "Topics": "a, b"})
    assert options.schema().names[-1] == "headers"
    assert options.topics == ("a", "b")
    assert Options("kafka_batches", {"paths": '["a", "b"]'}).paths == ["a", "b"]


@pytest.mark.parametrize(
    ("options", "offsets"),
    [
        ({"startingOffsets": "4"}, [4, 5]),
        ({"endingOffsets": "2"}, [0, 1]),
        ({"startingOffsets": '{"t": {"0": 3}}', "endingOffsets": '{"t": {"0": -1}}'}, [3, 4, 5]),
        ({"startingOffsets": "latest"}, []),
        ({"startingTimestamp": str(NOW_MS + 2), "endingTimestamp": "2023-11-14T22:13:20.004Z"}, [2, 3]),
        ({"partitions": "0,9"}, [0, 1, 2, 3, 4, 5]),
        ({"partitions": "9"}, []),
    ],
)  # fmt: skip
def test_what_is_read_can_be_bounded(tmp_path: Path, options: dict[str, str], offsets: list[int]) -> None:
    """By offsets, times and partitions, by the names of Spark's own options where it has them."""
    write_segment(tmp_path, *chain(2, 4))
    planned = tasks("kafka_segments", {"path": str(tmp_path), **options}, ["offset"])
    assert [row["offset"] for task in planned for row in rows(read(task))] == offsets


def condition(*parts: Any) -> Condition:
    """One condition."""
    return Condition(*parts)


def test_conditions_become_bounds() -> None:
    """The narrowest that all of them allow."""
    bounds = limits([condition("offset", ">", 4), condition("offset", ">=", 3), condition("offset", "<=", 9)])
    assert bounds.offsets == (5, 10)
    assert limits([condition("offset", "in", [7, 3]), condition("offset", "<", 6)]).offsets == (3, 6)
    assert limits([condition("base_offset", "=", 3)]).offsets == (3, 4)
    bounds = limits(
        [condition("topic", "in", ["a", "b"]), condition("topic", "=", "b"), condition("partition", "=", 1)]
    )
    assert (bounds.wants("b", 1), bounds.wants("a", 1), bounds.wants("b", 0)) == (True, False, False)
    assert limits([condition("offset", "=", None), condition("value", "=", b"x")]) == limits([])


def test_instants_become_milliseconds() -> None:
    """The limits include the whole millisecond; times without a zone set no limit."""
    at = datetime(2023, 11, 14, 22, 13, 20, 500, tzinfo=UTC)
    assert limits([condition("timestamp", ">", at), condition("timestamp", "<", at)]).times == (NOW_MS, NOW_MS + 1)
    assert limits([condition("timestamp_ms", ">", 5), condition("timestamp_ms", "<", 9)]).times == (6, 9)
    assert limits([condition("timestamp", "=", at.replace(tzinfo=None))]).times == (None, None)
    assert limits([condition("timestamp", ">=", at - timedelta(days=30_000))]).times[0] == NOW_MS - 30_000 * 86_400_000


@pytest.mark.parametrize("split_bytes", ["1", "1000000"])
def test_tasks_hold_what_is_asked_for(tmp_path: Path, split_bytes: str) -> None:
    """Many small logs become few tasks, or as many as there are splits."""
    for partition in range(20):
        write_segment(tmp_path, *chain(3), name=f"t-{partition}")
    write_segment(tmp_path, *chain(3), name="other-0")
    options = {"path": str(tmp_path), "topicPattern": "t.*", "splitBytes": split_bytes}
    planned = tasks(
        "kafka_segments", options, ["partition", "offset"], [("partition", "in", [3, 4]), ("offset", ">=", 1)]
    )
    assert len(planned) == (2 if split_bytes == "1" else 1)
    read_rows = [tuple(row.values()) for task in planned for row in rows(read(task))]
    assert read_rows == [(partition, offset) for partition in (3, 4) for offset in (1, 2)]
    assert Split("t", 0, ()).size == 0
