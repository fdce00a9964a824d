"""Arrow -> batches -> Arrow: every value survives the way there and back."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.encoding import BATCH_BYTES, Batching, encode, varints
from pipeline.schemas import EXTRA, KAFKA
from protocol.records.batch import BATCH_HEADER_SIZE, VARLONG_MAX_BYTES, RecordBatch, read_varint
from protocol.records.compression import Codec
from protocol.records.records import Record, read_records

HEADERS = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=4)
TIMES = st.integers(-1, 2**44)
MOST = BATCH_BYTES + BATCH_HEADER_SIZE
"""Bytes of a batch of several records."""
ROWS = st.lists(
    st.tuples(
        st.integers(1, 3000), TIMES, st.none() | st.binary(max_size=300), st.none() | st.binary(max_size=300), HEADERS
    ),
    min_size=1,
    max_size=60,
)


Row = tuple[int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]


def table(rows: list[Record], kind: int = 0) -> pa.Table:
    """Records as the columns that are encoded."""
    columns = {
        "offset": pa.array([row.offset for row in rows], pa.int64()),
        "timestamp_ms": pa.array([row.timestamp_ms for row in rows], pa.int64()),
        "timestampType": pa.array([kind] * len(rows), KAFKA.field("timestampType").type),
        "key": pa.array([row.key for row in rows], pa.binary()),
        "value": pa.array([row.value for row in rows], pa.binary()),
        "headers": pa.array(
            [[{"key": key, "value": value} for key, value in row.headers] or None for row in rows],
            EXTRA.field("headers").type,
        ),
    }
    return pa.table(columns)


@settings(deadline=None)
@given(ROWS, st.sampled_from([Codec.NONE, Codec.GZIP, Codec.ZSTD]))
def test_records_come_back_as_they_went(rows: list[Row], codec: int) -> None:
    """Offsets with holes, times, nulls against empty, headers with duplicates in their order."""
    records, offset = [], 0
    for step, at_ms, key, value, headers in rows:
        offset += step
        records.append(Record(offset, at_ms, key, value, tuple(headers)))
    batches = [RecordBatch(batch) for batch in encode(table(records), Batching(codec=codec))]
    assert [record for batch in batches for record in read_records(batch)] == records
    assert all(batch.crc_ok() and batch.codec in {codec, Codec.NONE} for batch in batches)
    assert [batch.max_timestamp_ms for batch in batches] == [
        max(record.timestamp_ms for record in read_records(batch)) for batch in batches
    ]


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-200, 200), min_size=1))
def test_numbers_are_varints_as_the_protocol_has_them(numbers: list[int]) -> None:
    """Numbers are written as the protocol's varints, of one to ten bytes."""
    encoded = varints(np.array(numbers, np.int64)).to_pylist()
    assert [read_varint(each, 0, VARLONG_MAX_BYTES) for each in encoded] == [
        (number, len(each)) for number, each in zip(numbers, encoded, strict=True)
    ]


def test_append_times_are_kept_batch_by_batch() -> None:
    """A batch has one append time: where it changes, another batch begins."""
    rows = [Record(at, 1000 + at // 2, b"k", b"v") for at in range(6)]
    batches = [RecordBatch(batch) for batch in encode(table(rows, kind=1), Batching())]
    assert all(batch.is_log_append_time for batch in batches)
    assert [batch.max_timestamp_ms for batch in batches] == [1000, 1001, 1002]
    assert [record for batch in batches for record in read_records(batch)] == rows


def test_batches_are_of_a_size_that_brokers_take() -> None:
    """Many records make several batches, each below the limit; a large one has a batch of its own."""
    rows = [Record(at, 0, None, bytes(BATCH_BYTES // 10)) for at in range(35)]
    rows.append(Record(40, 0, None, bytes(3 * BATCH_BYTES)))
    batches = [RecordBatch(batch) for batch in encode(table(rows), Batching())]
    assert len(batches) >= 4
    assert all(batch.size <= MOST for batch in batches[:-1])
    assert sum(batch.record_count for batch in batches) == 36


@pytest.mark.parametrize(
    "headers", [[("h", bytes(100))] * 300, [("h" * 100, None)] * 300, []], ids=["values", "names", "none"]
)
def test_all_of_a_record_counts_in_the_size_of_its_batch(headers: list[tuple[str, bytes | None]]) -> None:
    """Its headers too, which may be most of it; and the record that would pass the limit begins the next batch."""
    size = 0 if headers else 6 * BATCH_BYTES // 10
    rows = [Record(at, 0, b"k", bytes(size), tuple(headers if at % 5 else ())) for at in range(100)]
    batches = [RecordBatch(batch) for batch in encode(table(rows), Batching())]
    assert all(batch.size <= MOST for batch in batches)
    assert [record for batch in batches for record in read_records(batch)] == rows
    filled = sum(batch.size for batch in batches) / len(batches)
    assert filled > BATCH_BYTES / 2


@pytest.mark.parametrize("drop", [(), (0,), (1, 2)])
def test_producers_batches_are_made_as_they_were(drop: tuple[int, ...]) -> None:
    """Borders, sequences and flags; also where compaction has taken records of a batch."""
    rows = [Record(10 + at, 5, b"k", b"v") for at in range(6) if at not in drop]
    count = len(rows)
    producer = {
        "producer_id": pa.array([7] * count, pa.int64()),
        "producer_epoch": pa.array([2] * count, pa.int16()),
        "sequence": pa.array([(row.offset - 12) & 0x7FFFFFFF for row in rows], pa.int32()),
        "is_transactional": pa.array([True] * count),
        "is_control": pa.array([False] * count),
        "batch_base_offset": pa.array([10 if row.offset < 13 else 13 for row in rows], pa.int64()),
    }
    whole = table(rows)
    for name, column in producer.items():
        whole = whole.append_column(name, column)
    batches = [RecordBatch(batch) for batch in encode(whole, Batching(producers=True))]
    assert [(batch.base_offset, batch.base_sequence) for batch in batches] == [(10, 2**31 - 2), (13, 1)]
    assert all(batch.is_transactional and batch.producer_id == 7 and batch.producer_epoch == 2 for batch in batches)
    assert [record for batch in batches for record in read_records(batch)] == rows
