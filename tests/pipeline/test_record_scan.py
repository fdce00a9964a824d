"""Lanes that begin at guessed places find what a walk from record to record finds, with any content of the records."""

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.decoding import record_scan
from pipeline.decoding.varints import PADDING
from protocol.records.batch import BATCH_HEADER_SIZE
from protocol.records.errors import MalformedRecordsError
from protocol.records.records import Record, build_batch
from tests.pipeline.logs import NOW_MS

Parts = tuple[Any, Any, Any, Any]
"""Bytes, starts, stops and counts, as `find_records` takes them."""


def part(values: Sequence[bytes | None]) -> bytes:
    """The records part of a batch."""
    records = [Record(at, NOW_MS + at, b"%d" % at, value) for at, value in enumerate(values)]
    return bytes(build_batch(records)[BATCH_HEADER_SIZE:])


def laid(parts: Sequence[tuple[bytes, int]]) -> Parts:
    """Records parts and their counts, one behind another with the space of a header between them."""
    data, starts, stops = bytearray(), [], []
    for each, _ in parts:
        data += bytes(BATCH_HEADER_SIZE)
        starts.append(len(data))
        data += each
        stops.append(len(data))
    counts = [count for _, count in parts]
    data += bytes(PADDING)
    return np.frombuffer(bytes(data), np.uint8), np.array(starts), np.array(stops), np.array(counts)


def assert_the_same(parts: Parts) -> None:
    """Both walks, held against each other."""
    for ours, theirs in zip(record_scan._in_lanes(*parts), record_scan._one_by_one(*parts), strict=True):
        assert ours.tolist() == theirs.tolist()


VALUE = (
    st.none() | st.binary(max_size=40) | st.integers(0, 400).map(bytes) | st.integers(0, 20_000).map(lambda n: b"x" * n)
)
NESTED = st.lists(st.binary(max_size=9), min_size=1, max_size=30).map(part)


@given(batches=st.lists(st.lists(VALUE | NESTED, min_size=1, max_size=60), min_size=1, max_size=4))
def test_any_records(batches: list[list[bytes | None]]) -> None:
    """Short lanes, so that many begin within few records: also within values that hold records themselves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_scan, "_LANE_RECORDS", 3)
        assert_the_same(laid([(part(each), len(each)) for each in batches]))


def test_large_batches() -> None:
    """Records of different sizes, in lanes as they are."""
    chance = Random(3)
    batches = [[b"v" * chance.randrange(300) for _ in range(count)] for count in (3000, 1, 2000, 700)]
    assert_the_same(laid([(part(each), len(each)) for each in batches]))


@pytest.mark.parametrize("nested", [False, True])
def test_a_lane_at_a_wrong_place_counts_for_nothing(nested: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values that hold records lead every guess astray: that batch is walked record by record, the other is not."""
    walked: list[int] = []
    walk = record_scan._one_by_one

    def watched(data: Any, starts: Any, stops: Any, counts: Any) -> record_scan.Places:
        walked.append(int(counts.sum()))
        return walk(data, starts, stops, counts)

    inner = part([b"abc"] * 40)
    layout = laid([(part([inner if nested else b"z" * len(inner)] * 800), 800), (part([b"abc"] * 900), 900)])
    wanted = walk(*layout)
    monkeypatch.setattr(record_scan, "_one_by_one", watched)
    begins, ends = record_scan._in_lanes(*layout)
    assert walked == ([800] if nested else [])
    assert (begins.tolist(), ends.tolist()) == (wanted[0].tolist(), wanted[1].tolist())


@pytest.mark.parametrize("change", [b"\x01", b"\xfe\xff\xff\xff\xff\xff", b"\x00", b"\x7e"])
def test_sizes_that_are_wrong_are_refused(change: bytes) -> None:
    """Negative, longer than a varint, none, too large: as where records are walked one by one."""
    whole = part([b"value"] * 9000)
    data, starts, stops, counts = laid([(whole, 9000)])
    begins, ends = record_scan.find_records(data, starts, stops, counts)
    assert len(begins) == 9000
    broken = data.copy()
    at = int(ends[4321])
    broken[at : at + len(change)] = np.frombuffer(change, np.uint8)
    with pytest.raises(MalformedRecordsError):
        record_scan.find_records(broken, starts, stops, counts)
