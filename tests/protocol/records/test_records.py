"""Records out of batches, batches out of records."""

import gzip

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.records.batch import RecordBatch
from protocol.records.compression import Codec
from protocol.records.errors import MalformedRecordsError
from protocol.records.records import Record, build_batch, read_records, rebase_records, record_bytes

KEYS = st.none() | st.binary(max_size=200)
HEADERS = st.lists(st.tuples(st.text(max_size=20), st.none() | st.binary(max_size=20)), max_size=4).map(tuple)
TIMES = st.integers(0, 2**45)


@st.composite
def record_lists(draw: st.DrawFn) -> list[Record]:
    """Records with ascending offsets, gaps allowed."""
    offset = draw(st.integers(0, 2**40))
    records = []
    for _ in range(draw(st.integers(1, 12))):
        records.append(Record(offset, draw(TIMES), draw(KEYS), draw(KEYS), draw(HEADERS)))
        offset += draw(st.integers(1, 3))
    return records


@pytest.mark.slow
@settings(max_examples=60)
@given(record_lists(), st.sampled_from(Codec))
def test_every_record_survives_the_round_trip(records: list[Record], codec: Codec) -> None:
    """Offsets, times, nulls, and headers in order with duplicates, in every codec (core PRD-19)."""
    batch = RecordBatch(build_batch(records, codec=codec))
    assert batch.crc_ok()
    assert batch.codec == codec
    assert list(read_records(batch)) == records
    assert batch.max_timestamp_ms == max(record.timestamp_ms for record in records)
    assert (batch.base_offset, batch.last_offset) == (records[0].offset, records[-1].offset)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_a_batch_of_another_client_is_read(codec: Codec) -> None:
    """A batch that aiokafka has built is read record by record."""
    builder = DefaultRecordBatchBuilder(
        2, codec, is_transactional=1, producer_id=7, producer_epoch=2, base_sequence=5, batch_size=100_000
    )
    headers = [("a", b"1"), ("a", None)]
    sent = [(1_700_000_000_000 + index, b"k%d" % index if index else None, b"v" * index) for index in range(50)]
    for index, (timestamp_ms, key, value) in enumerate(sent):
        builder.append(index, timestamp=timestamp_ms, key=key, value=value, headers=headers)
    batch = RecordBatch(bytes(builder.build()))
    assert batch.crc_ok()
    assert (batch.is_transactional, batch.producer_id, batch.producer_epoch, batch.base_sequence) == (True, 7, 2, 5)
    assert list(read_records(batch)) == [
        Record(index, timestamp_ms, key, value, tuple(headers)) for index, (timestamp_ms, key, value) in enumerate(sent)
    ]


@pytest.mark.parametrize("codec", list(Codec))
def test_another_client_reads_a_batch_of_ours(codec: Codec) -> None:
    """Aiokafka checks the CRC and finds the same records."""
    records = [Record(10 + index, 1000 + index, b"key", b"value%d" % index, (("h", b"x"),)) for index in range(300)]
    batch = MemoryRecords(bytes(build_batch(records, codec=codec, partition_leader_epoch=4))).next_batch()
    assert batch is not None
    assert batch.validate_crc()
    assert [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in batch] == [
        (r.offset, r.timestamp_ms, r.key, r.value, [("h", b"x")]) for r in records
    ]


def test_the_vector_of_a_transactional_batch_is_built() -> None:
    """Byte for byte (transactions F.5)."""
    batch = build_batch(
        [Record(5, 1_700_000_000_500, b"k", b"v")],
        producer_id=1000,
        producer_epoch=2,
        base_sequence=0,
        transactional=True,
        partition_leader_epoch=3,
    )
    assert batch.hex() == (
        "00000000000000050000003a0000000302fa38511e0010000000000000018bcfe569f40000018bcfe569f4"
        "00000000000003e80002000000000000000110000000026b027600"
    )


def test_the_vector_of_a_transactional_offset_commit_is_built() -> None:
    """Byte for byte: group g1, foo-3 at 42 (transactions F.5)."""
    key = bytes.fromhex("0001000267310003666f6f00000003")
    value = bytes.fromhex("0004000000000000002a00000007010000018bcfe5680000")
    batch = build_batch(
        [Record(6, 1_700_000_000_000, key, value)],
        producer_id=1000,
        producer_epoch=2,
        base_sequence=0,
        transactional=True,
        partition_leader_epoch=3,
    )
    assert batch.hex() == (
        "00000000000000060000005f000000030239d6ceee0010000000000000018bcfe568000000018bcfe5680000"
        "000000000003e8000200000000000000015a0000001e0001000267310003666f6f00000003300004000000000000"
        "002a00000007010000018bcfe568000000"
    )


def test_log_append_time_is_the_time_of_every_record() -> None:
    """The deltas in the records count for nothing then (core D.3)."""
    records = [Record(index, 1000 + index, None, b"v") for index in range(3)]
    batch = RecordBatch(build_batch(records, log_append_time=True, max_timestamp_ms=9000))
    assert [record.timestamp_ms for record in read_records(batch)] == [9000] * 3


def test_the_cleaner_keeps_a_batch_range_and_its_times() -> None:
    """Offsets of missing records stay accounted for, a delete horizon takes the base timestamp's place (core F.6)."""
    kept = [Record(12, 5000, b"k", None)]
    batch = RecordBatch(build_batch(kept, base_offset=10, last_offset=14, delete_horizon_ms=7000))
    assert (batch.base_offset, batch.last_offset, batch.record_count) == (10, 14, 1)
    assert batch.has_delete_horizon
    assert (batch.base_timestamp_ms, batch.max_timestamp_ms) == (7000, 5000)
    assert list(read_records(batch)) == kept


def test_a_batch_without_records_is_a_bare_header() -> None:
    """61 bytes with any codec: what the cleaner leaves of a producer's last batch (core F.6.5)."""
    options = {"producer_id": 7, "producer_epoch": 1, "base_sequence": 3}
    batch = RecordBatch(
        build_batch([], base_offset=4, last_offset=6, max_timestamp_ms=99, codec=Codec.GZIP, **options)  # type: ignore[arg-type]
    )
    assert (batch.size, batch.record_count, batch.codec) == (61, 0, 0)
    assert (batch.base_offset, batch.last_offset, batch.last_sequence) == (4, 6, 5)
    assert (batch.base_timestamp_ms, batch.max_timestamp_ms) == (-1, 99)
    assert batch.crc_ok()
    assert list(read_records(batch)) == []


def test_a_record_count_that_is_not_true_is_noticed() -> None:
    """Too few and too many records, at the end of the walk."""
    buffer = build_batch([Record(index, 0, None, b"v") for index in range(3)])
    for count in (2, 4):
        buffer[57:61] = count.to_bytes(4, "big")
        with pytest.raises(MalformedRecordsError):
            list(read_records(RecordBatch(buffer)))


def test_header_keys_that_are_not_utf8_become_replacement_characters() -> None:
    """As in Java; the bytes in the batch stay."""
    buffer = build_batch([Record(0, 0, None, None, (("x", b"1"),))])
    buffer[buffer.rindex(b"x")] = 0xFF
    assert next(read_records(RecordBatch(buffer))).headers == (("�", b"1"),)


def test_rebased_records_count_from_zero() -> None:
    """New deltas, everything else byte for byte."""
    records = [Record(offset, 1000 * offset, b"k" * offset, None, (("h", b"v"),)) for offset in (3, 5, 900)]
    data = record_bytes(RecordBatch(build_batch(records, base_offset=0, base_timestamp_ms=0)))
    rebased = rebase_records(data, 3, 3000)
    expected = [record._replace(offset=index) for index, record in enumerate(records)]
    assert rebased == record_bytes(RecordBatch(build_batch(expected)))
    level = [record._replace(timestamp_ms=0) for record in expected]
    assert rebase_records(data, 3, None) == record_bytes(RecordBatch(build_batch(level)))


def test_the_level_of_compression_is_kafkas() -> None:
    """Gzip levels 1 and 9 differ in what they make of the same records."""
    records = [Record(index, 0, None, b"%d-" % (index * 7919) * 20) for index in range(200)]
    sizes = [len(build_batch(records, codec=Codec.GZIP, level=level)) for level in (1, 9)]
    assert sizes[0] > sizes[1]
    unpacked = gzip.decompress(build_batch(records, codec=Codec.GZIP)[61:])
    assert unpacked == record_bytes(RecordBatch(build_batch(records)))
