"""Long lists are read and written in steps, between which other clients are served."""

import json
from collections.abc import Generator
from typing import Any, TypeVar

import pytest

from broker.control import document
from broker.control.problems import Problem
from control_api.answers.topics import Partition, Topic, Topics
from control_api.encoding import json_in_steps
from control_api.reading import Unfit, read_body, read_body_in_steps
from control_api.topics import NewRecords

T = TypeVar("T")
COUNT = 20_000


def counted(steps: Generator[None, None, T]) -> tuple[T, int]:
    """The result of work in steps, and how many there were."""
    count = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value, count
        count += 1


def body(count: int) -> dict[str, Any]:
    """A body of `records write`."""
    return {"records": [{"value": f"ä{number}", "partition": number % 3} for number in range(count)]}


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 64, 65, COUNT])
def test_a_long_body_is_parsed_as_a_short_one(count: int) -> None:
    """With any white space; a long one in many steps."""
    for raw in (json.dumps(body(count)).encode(), json.dumps(body(count), indent=1, ensure_ascii=False).encode()):
        parsed, steps = counted(document.parse(raw))
        assert parsed == body(count)
        assert steps >= count // 100
        read, more = counted(read_body_in_steps(NewRecords, parsed))
        assert read == read_body(NewRecords, parsed)
        assert more >= count // 100


@pytest.mark.slow
@pytest.mark.parametrize("end", ["", "}", ",]}", "]}x", "]", '],"records":}', '{"value":1e999}]}', "]}}"])
def test_a_mistake_at_the_end_of_a_long_body_is_found(end: str) -> None:
    """It is refused as it is in a short body; the whole body is accepted."""
    whole = json.dumps(body(COUNT))
    counted(document.parse(whole.encode()))
    with pytest.raises((Problem, Unfit)):
        counted(document.parse((whole[:-2] + end).encode()))


def test_a_mistake_in_the_last_record_is_reported_with_its_place() -> None:
    """The field's path counts all records."""
    wrong = body(COUNT)
    wrong["records"][-1]["partition"] = "one"
    with pytest.raises(Unfit) as caught:
        counted(read_body_in_steps(NewRecords, wrong))
    assert caught.value.field == f"records.{COUNT - 1}.partition"


@pytest.mark.slow
def test_an_answer_is_written_in_steps() -> None:
    """Of topics with many partitions, given as iterators; the details of partitions are left out of lists."""
    partition = Partition(
        0, leader=1, leader_epoch=0, replicas=(1,), isr=(1,), held=(), log_start_offset=0, high_watermark=0,
        last_stable_offset=0, log_end_offset=0, size_bytes=0, segments=(), producers=(), open_transactions=(),
        aborted_transactions=(),
    )  # fmt: skip
    partitions: Any = (partition for _ in range(COUNT))
    topics = [Topic("ä", partitions=partitions, configs={"a": None}), Topic("b")]
    text, steps = counted(json_in_steps(Topics, {"topics": topics}))
    assert steps > COUNT
    first, second = json.loads(text)["topics"]
    assert len(first["partitions"]) == COUNT
    assert first["partitions"][0]["replicas"] == [1]
    assert "segments" not in first["partitions"][0]
    assert (first["name"], first["configs"], second["partitions"]) == ("ä", {"a": None}, [])
