"""Segment bytes -> Arrow, held against readers that look at one record after another: ours, and aiokafka's."""

from pathlib import Path
from typing import Any

import cramjam
import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from hypothesis import given
from hypothesis import strategies as st

from pipeline.decoding import record_scan
from pipeline.reading import read_segments
from protocol.records.batch import BATCH_HEADER_SIZE, HEADER
from protocol.records.records import Record, build_batch, build_marker, frame_batch
from tests.pipeline.logs import NOW_MS, RECORD, as_tuples, chain, expected, read, write_segment

CODECS = range(5)
BLOB = st.none() | st.binary(max_size=200)
RECORDS = st.lists(
    st.tuples(
        st.integers(-(2**40), 2**40),  # ms from now
        BLOB,
        BLOB,
        st.lists(st.tuples(st.sampled_from(["a", "b", "", "ü"]), BLOB), max_size=4),
        st.integers(1, 3),  # offsets from the record before
    ),
    min_size=1,
    max_size=30,
)


@given(batches=st.lists(st.tuples(RECORDS, st.sampled_from(CODECS), st.booleans()), min_size=1, max_size=6))
def test_records_are_what_a_slow_reader_reads(
    batches: list[tuple[list[Any], int, bool]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Nulls, empty bytes, repeated headers, gaps in offsets, times far away, LogAppendTime, every codec, mixed."""
    data = bytearray()
    offset = 0
    for records, codec, appended in batches:
        batch = []
        for delta_ms, key, value, headers, step in records:
            batch.append(Record(offset, NOW_MS + delta_ms, key, value, headers))
            offset += step
        data += build_batch(batch, codec=codec, log_append_time=appended, partition_leader_epoch=3)
    path = write_segment(tmp_path_factory.mktemp("log"), data)
    assert as_tuples(read(path, *RECORD)) == expected(bytes(data))


@pytest.mark.parametrize("codec", CODECS)
def test_records_are_what_aiokafka_reads(tmp_path: Path, codec: int) -> None:
    """Written by aiokafka, read by both."""
    data = bytearray()
    for base in range(0, 600, 100):
        builder = DefaultRecordBatchBuilder(2, codec, 1, 7, 3, base, 1_000_000)
        for index in range(100):
            headers = [("trace", b"x" * index), ("trace", None)] if index % 10 == 0 else []
            value = None if index % 7 == 0 else b"value" * (index % 50)
            key = b"%d" % index if index % 2 else None
            assert builder.append(index, NOW_MS - index, key, value, headers)
        batch = bytearray(builder.build())
        batch[:8] = base.to_bytes(8, "big")
        data += batch
    decoded = read(
        write_segment(tmp_path, data), *RECORD, "sequence", "producer_id", "producer_epoch", "is_transactional"
    )
    records = MemoryRecords(bytes(data))
    theirs = []
    while (batch_there := records.next_batch()) is not None:
        theirs += [
            (each.offset, each.timestamp, each.key, each.value, list(each.headers) or None) for each in batch_there
        ]
    assert as_tuples(decoded) == theirs
    assert len(decoded) == 600
    assert {(row["producer_id"], row["producer_epoch"], row["is_transactional"]) for row in decoded} == {(7, 3, True)}
    assert [row["sequence"] for row in decoded] == list(range(600))


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, 1, 2])
def test_the_formats_before_v2_are_read(tmp_path: Path, magic: int, codec: int) -> None:
    """Messages of magic 0 and 1, compressed ones too, beside batches of today."""
    builder = LegacyRecordBatchBuilder(magic, codec, 100_000)
    for index in range(5):
        builder.append(index, timestamp=NOW_MS + index, key=None if index == 2 else b"k", value=b"%d" % index)
    old = builder.build()
    if magic and codec:
        old[:8] = (4).to_bytes(8, "big")  # a broker gives the wrapper the offset of the last
    new = build_batch([Record(5, NOW_MS, b"k", b"new")], partition_leader_epoch=0)
    records = read(write_segment(tmp_path, old + new), *RECORD, "timestampType")
    assert [row["value"] for row in records] == [b"0", b"1", b"2", b"3", b"4", b"new"]
    assert [row["offset"] for row in records] == list(range(6))
    assert [row["key"] for row in records] == [b"k", b"k", None, b"k", b"k", b"k"]
    times = [NOW_MS + index if magic else -1 for index in range(5)]
    assert [row["timestamp_ms"] for row in records] == [*times, NOW_MS]
    assert {row["timestampType"] for row in records[:5]} == {0 if magic else -1}


@pytest.mark.parametrize("counts", [(3000,), (1,) * 500, (2000, 1, 1, 1), (50, 60, 70) * 20, (5000, 1, 4000)])
@pytest.mark.parametrize("value_size", [0, 20, 9000])
def test_all_walks_find_the_same(tmp_path: Path, counts: tuple[int, ...], value_size: int) -> None:
    """Few large batches are walked record by record, or cut into lanes; many small ones go side by side."""
    if value_size * sum(counts) > 10_000_000:
        counts = counts[:20]
        counts = tuple(min(count, 50) for count in counts)
    data = b"".join(chain(*counts, value_size=value_size))
    assert as_tuples(read(write_segment(tmp_path, data), *RECORD)) == expected(data)


def test_each_walk_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The positive control of the test above: one log is walked each way."""
    walked: list[str] = []

    def watch(name: str) -> None:
        walk = getattr(record_scan, name)

        def watched(*arguments: Any) -> Any:
            walked.append(name)
            return walk(*arguments)

        monkeypatch.setattr(record_scan, name, watched)

    watch("_in_lock_step")
    watch("_one_by_one")
    watch("_in_lanes")
    for index, counts in enumerate([(3000,), (1,) * 500, (5000, 4000)]):
        read(write_segment(tmp_path, *chain(*counts), name=f"t-{index}"), "offset")
    assert walked == ["_one_by_one", "_in_lock_step", "_in_lanes"]


def test_chunks_and_groups_are_cut_at_batches(tmp_path: Path) -> None:
    """A log larger than a chunk, with a batch larger than a chunk, and one that decompresses to several groups."""
    large = build_batch([Record(400, NOW_MS, None, bytes(9_000_000))], partition_leader_epoch=0)
    packed = [
        build_batch([Record(at, NOW_MS, b"%d" % at, bytes(6_000_000))], codec=4, partition_leader_epoch=0)
        for at in range(401, 407)
    ]
    data = b"".join([*chain(100, 100, 200, value_size=20_000), large, *packed])
    assert len(data) > 16 * 1024 * 1024
    path = write_segment(tmp_path, data)
    segments = list(read_segments(path, columns=["offset", "value"]))
    assert [row["offset"] for batch in segments for row in batch.select(["offset"]).to_pylist()] == list(range(407))
    assert len(segments) >= 4
    assert sum(batch.nbytes for batch in segments) > 44_000_000
    assert max(batch.nbytes for batch in segments) < 26_000_000


def test_snappy_without_frames_is_read(tmp_path: Path) -> None:
    """As librdkafka writes it: one bare block."""
    plain = build_batch([Record(0, NOW_MS, b"k", b"v" * 100)])
    raw = memoryview(cramjam.snappy.compress_raw(bytes(plain[BATCH_HEADER_SIZE:])))
    head = HEADER.unpack_from(plain)
    batch = frame_batch(raw, 1, base_offset=0, last_offset_delta=0, base_timestamp_ms=head[7], max_timestamp_ms=head[8],
                        attributes=2, partition_leader_epoch=0)  # fmt: skip
    assert as_tuples(read(write_segment(tmp_path, batch), *RECORD)) == [(0, NOW_MS, b"k", b"v" * 100, None)]


def test_control_records_are_rows_where_they_are_asked_for(tmp_path: Path) -> None:
    """Left out as a consumer leaves them out, unless `control` asks for them."""
    data = build_batch([Record(0, NOW_MS, b"k", b"v")], producer_id=5, producer_epoch=1, base_sequence=0,
                       transactional=True, partition_leader_epoch=0)  # fmt: skip
    data += build_marker(5, 1, False, 9, NOW_MS, base_offset=1, partition_leader_epoch=0)
    path = write_segment(tmp_path, data)
    names = ("offset", "is_control", "is_transactional", "sequence", "key")
    records = [tuple(row.values()) for row in read(path, *names, control=True)]
    assert records == [(0, False, True, 0, b"k"), (1, True, True, -1, b"\0\0\0\0")]
    assert [row["offset"] for row in read(path, "offset")] == [0]


def test_what_surrounds_a_record_can_be_asked_for(tmp_path: Path) -> None:
    """Segment, position, epoch, batch; times as instants and as they are."""
    data = chain(2, 3)
    path = write_segment(tmp_path, *data)
    names = ("topic", "partition", "segment", "position", "leader_epoch", "batch_base_offset", "timestampType")
    last = read(path, *names)[-1]
    assert tuple(last.values()) == ("t", 0, str(path), len(data[0]), 0, 2, 0)
    row = read(path)[1]
    assert list(row) == ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"]
    assert row["timestamp"].timestamp() * 1000 == NOW_MS + 1


def test_times_out_of_range_are_null(tmp_path: Path) -> None:
    """Nanoseconds that were taken for milliseconds; `timestamp_ms` has them."""
    times = [NOW_MS * 1_000_000, -1, 2**63 - 1]
    data = build_batch([Record(at, time, None, b"") for at, time in enumerate(times)], partition_leader_epoch=0)
    segments = list(read_segments(write_segment(tmp_path, data), columns=["timestamp", "timestamp_ms"]))
    assert segments[0]["timestamp_ms"].to_pylist() == times
    assert segments[0]["timestamp"].cast("int64").to_pylist() == [None, -1000, None]


def test_header_names_that_are_no_text_are_read_as_java_reads_them(tmp_path: Path) -> None:
    """The replacement character takes the place of what is not UTF-8."""
    batch = build_batch([Record(0, NOW_MS, None, b"", [("ab", b"x")])], partition_leader_epoch=0)
    at = batch.index(b"ab")
    data = batch[BATCH_HEADER_SIZE:at] + b"\xffb" + batch[at + 2 :]
    wrong = frame_batch(data, 1, base_offset=0, last_offset_delta=0, base_timestamp_ms=NOW_MS, max_timestamp_ms=NOW_MS,
                        partition_leader_epoch=0)  # fmt: skip
    assert read(write_segment(tmp_path, wrong), "headers") == [{"headers": [{"key": "\ufffdb", "value": b"x"}]}]
