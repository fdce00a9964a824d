"""Streams without Spark: how far they go, what bounds a batch, and the error when records are gone."""

import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from pipeline.sources import read as read_task
from pipeline.streams import JournalStream, Limit, LogStream, open_stream
from storage.checkpoints import encode_partition_metadata
from tests.pipeline.logs import chain, rows, write_segment
from tests.pipeline.test_journal import line, write

ALL = Limit("all")


def checkpoint(folder: Path, **offsets: int) -> None:
    """The high watermarks of partitions 0, as a broker writes them."""
    lines = [f"{topic} 0 {offset}" for topic, offset in offsets.items()]
    (folder / "replication-offset-checkpoint").write_text("\n".join(["0", str(len(lines)), *lines]) + "\n")


def logs(folder: Path, source: str = "kafka_segments", **options: str) -> LogStream:
    """A stream over a data directory."""
    stream = open_stream(source, {"path": str(folder), **options})
    assert isinstance(stream, LogStream)
    return stream


def between(stream: LogStream | JournalStream, start: Any, end: Any, *names: str) -> list[Any]:
    """The values between two places, of one column, or tuples of several."""
    streamed = [row for task in stream.tasks(start, end, names) for row in rows(read_task(task))]
    return [tuple(row.values()) if len(names) > 1 else row[names[0]] for row in streamed]


def test_a_log_is_read_up_to_its_high_watermark(tmp_path: Path) -> None:
    """Without one, up to its last whole batch; what appears later is followed, new topics too."""
    first, second = chain(3, 3)
    write_segment(tmp_path, first, second[:-1])
    stream = logs(tmp_path)
    assert stream.first() == {"t-0": 0}
    assert stream.next({"t-0": 0}, ALL) == {"t-0": 3}
    checkpoint(tmp_path, t=2)
    assert stream.next({"t-0": 0}, ALL) == {"t-0": 2}
    assert between(stream, {"t-0": 0}, {"t-0": 2}, "offset") == [0, 1]
    write_segment(tmp_path, first, second)
    write_segment(tmp_path, first, name="u-0")
    checkpoint(tmp_path, t=6, u=3)
    assert stream.next({"t-0": 2}, ALL) == {"t-0": 6, "u-0": 3}
    assert between(stream, {"t-0": 2}, {"t-0": 6, "u-0": 3}, "topic", "offset") == [
        *(("t", offset) for offset in range(2, 6)),
        *(("u", offset) for offset in range(3)),
    ]


def test_a_topic_that_was_created_again_is_noticed_by_its_id(tmp_path: Path) -> None:
    """Its log may be longer than the stream was far, so that no offset gives it away."""
    first, second = chain(3, 3)
    write_segment(tmp_path, first)
    metadata = tmp_path / "t-0" / "partition.metadata"
    metadata.write_bytes(encode_partition_metadata(UUID(int=1)))
    place = logs(tmp_path).next(logs(tmp_path).first(), ALL)
    assert place["t-0"] == 3
    write_segment(tmp_path, first, second)
    assert logs(tmp_path).next(place, ALL)["t-0"] == 6
    metadata.write_bytes(encode_partition_metadata(UUID(int=2)))
    for step in (lambda: logs(tmp_path).next(place, ALL), lambda: logs(tmp_path).tasks(place, {"t-0": 6}, ["offset"])):
        with pytest.raises(ValueError, match="deleted and created again"):
            step()
    stream = logs(tmp_path, failOnDataLoss="false")
    end = stream.next(place, ALL)
    assert between(stream, place, end, "offset") == list(range(6))
    assert stream.next(end, ALL) == end


@pytest.mark.parametrize("limit", [Limit("rows", 4), Limit("bytes", 300), Limit("files", 1)])
def test_a_batch_is_as_large_as_it_may_be(tmp_path: Path, limit: Limit) -> None:
    """Step by step to the end; every record once, and no more at a time than the limit."""
    batches = chain(*[2] * 12)
    for topic in ("t", "u"):
        for base in (0, 8, 16):
            write_segment(tmp_path, *batches[base // 2 : base // 2 + 4], base=base, name=f"{topic}-0")
    stream = logs(tmp_path)
    target = stream.last()
    assert target == {"t-0": 24, "u-0": 24}
    place, steps, records = stream.first(), 0, []
    while place != target:
        following = stream.next(place, limit, target)
        step = between(stream, place, following, "topic", "offset")
        assert 0 < len(step) <= (4 if limit.kind == "rows" else 20)
        records += step
        place, steps = following, steps + 1
    assert sorted(records) == [(topic, offset) for topic in ("t", "u") for offset in range(24)]
    assert steps >= 3
    assert stream.next(place, limit, target) == place


def test_a_target_is_kept_while_the_log_grows(tmp_path: Path) -> None:
    """As Trigger.AvailableNow asks; partitions that appear meanwhile wait."""
    write_segment(tmp_path, *chain(3, 3))
    stream = logs(tmp_path)
    target = {"t-0": 3}
    write_segment(tmp_path, *chain(3), name="u-0")
    assert stream.next({"t-0": 0}, ALL, target) == {"t-0": 3, "u-0": 0}


def test_batches_of_a_stream_are_read_once(tmp_path: Path) -> None:
    """Also where a step ends within one: it belongs to the step that its first offset lies in."""
    write_segment(tmp_path, *chain(3, 3, 3))
    stream = logs(tmp_path, "kafka_batches")
    places: list[dict[str, Any]] = [{"t-0": offset} for offset in (0, 2, 4, 9)]
    steps = [between(stream, *pair, "base_offset") for pair in pairwise(places)]
    assert steps == [[0], [3], [6]]


def test_a_stream_begins_at_its_starting_offsets(tmp_path: Path) -> None:
    """Earliest, latest, or by topic and partition, as Spark's own source has it."""
    write_segment(tmp_path, *chain(3, 3))
    assert logs(tmp_path, startingOffsets="latest").first() == {"t-0": 6}
    assert logs(tmp_path, startingOffsets='{"t": {"0": 4}}').first() == {"t-0": 4}
    assert logs(tmp_path, startingOffsets='{"t": {"0": -1}}').first() == {"t-0": 6}
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\nt 0 2\n")
    assert logs(tmp_path).first() == {"t-0": 2}


@pytest.mark.parametrize("start", [0, 99])
def test_records_that_are_gone_are_not_passed_over_in_silence(tmp_path: Path, start: int) -> None:
    """Retention was faster, or the topic is another one; `failOnDataLoss=false` goes on with what there is."""
    write_segment(tmp_path, *chain(3, 3)[1:], base=3)
    with pytest.raises(ValueError, match=f"t-0: the stream is at offset {start}, the log goes from 3 to 6"):
        logs(tmp_path).tasks({"t-0": start}, {"t-0": 100}, ["offset"])
    tolerant = logs(tmp_path, failOnDataLoss="false")
    assert between(tolerant, {"t-0": start}, {"t-0": 100}, "offset") == ([3, 4, 5] if start == 0 else [])


def journal(folder: Path, **options: str) -> JournalStream:
    """A stream over a journal."""
    stream = open_stream("wire_journal", {"path": str(folder), **options})
    assert isinstance(stream, JournalStream)
    return stream


def test_a_journal_is_followed_from_file_to_file(tmp_path: Path) -> None:
    """Up to the last whole line; files that are finished meanwhile, and runs that begin."""
    stream = journal(tmp_path)
    assert stream.first() == stream.last() == {}
    opened = write(tmp_path, line(1), line(2)[:20], name="wire-A-000001.jsonl.open", end="")
    size = len(line(1)) + 1
    first = stream.next({}, ALL)
    assert first == {"A": [1, size]}
    opened.unlink()
    write(tmp_path, line(1), line(2), name="wire-A-000001.jsonl")
    write(tmp_path, line(3), name="wire-A-000002.jsonl.open")
    write(tmp_path, line(4), name="wire-B-000001.jsonl.open")
    second = stream.next(first, ALL)
    assert second == {"A": [2, size], "B": [1, size]}
    assert between(stream, {}, first, "id") == [1]
    assert between(stream, first, second, "id") == [2, 3, 4]
    assert stream.next(second, ALL) == second == stream.last()
    assert journal(tmp_path, startingOffsets="latest").first() == second


@pytest.mark.parametrize(("limit", "most"), [(Limit("rows", 3), 3), (Limit("bytes", 1500), 4), (Limit("files", 1), 5)])
def test_a_step_through_a_journal_is_bounded(tmp_path: Path, limit: Limit, most: int) -> None:
    """In lines, bytes or files; every line once."""
    for number in range(4):
        lines = [line(number * 5 + index) for index in range(5)]
        write(tmp_path, *lines, name=f"wire-A-{number + 1:06d}.jsonl")
    stream = journal(tmp_path)
    place, streamed, target = stream.first(), [], stream.last()
    while place != target:
        following = stream.next(place, limit, target)
        step = between(stream, place, following, "id")
        assert 0 < len(step) <= most
        streamed += step
        place = following
    assert streamed == list(range(20))


def test_tasks_are_bytes_that_need_this_code_only(tmp_path: Path) -> None:
    """They go to workers that import `pipeline` under their own roof."""
    write_segment(tmp_path, *chain(3))
    (task,) = logs(tmp_path).tasks({}, {"t-0": 3}, ["offset"])
    assert pickle.loads(task)[0] == "kafka_segments"  # noqa: S301 - our own
