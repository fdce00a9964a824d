"""The walk over records that makes no records: it must see what a record-by-record reading sees."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.records.batch import RecordBatch, Walked, read_varint, walk, wrap_int64, write_varint
from protocol.records.errors import MalformedRecordsError
from protocol.records.records import Record, build_batch, record_bytes, spans, write_record


def slowly(data: bytes, count: int) -> Walked:
    """The same answers from the record-by-record reader."""
    record_spans = list(spans(data, count))
    times = [span.timestamp_delta for span in record_spans] or [0]
    sequential = [span.offset_delta for span in record_spans] == list(range(count))
    return Walked(min(times), max(times), sequential, any(span.key_size < 0 for span in record_spans))


def check_agreement(data: bytes, count: int) -> None:
    """Both readers accept with the same answers, or both refuse."""
    try:
        expected: Walked | None = slowly(data, count)
    except MalformedRecordsError:
        expected = None
    if expected is None:
        with pytest.raises(MalformedRecordsError):
            walk(data, count)
        with pytest.raises(MalformedRecordsError):
            walk(bytearray(data), count)
    else:
        assert walk(data, count) == expected
        assert walk(bytearray(data), count) == expected


def alike(count: int, size: int, step_ms: int, start: int = 0, key: bytes | None = b"key") -> list[Record]:
    """Records of one size, so that the walk goes column by column."""
    return [Record(start + index, index * step_ms, key, b"v" * size) for index in range(count)]


def data_of(records: list[Record]) -> bytes:
    """Their bytes, with deltas from offset 0 and time 0."""
    return bytes(record_bytes(RecordBatch(build_batch(records, base_offset=0, base_timestamp_ms=0))))


@pytest.mark.parametrize("size", [0, 1, 20, 63, 64, 5000, 9000, 20_000])
@pytest.mark.parametrize("step_ms", [0, 1, -1, 100, 70_000, 2**40])
def test_records_of_one_shape_are_walked_in_runs(size: int, step_ms: int) -> None:
    """Deltas grow through all their widths while the sizes stay."""
    check_agreement(data_of(alike(150, size, step_ms)), 150)


def test_offset_deltas_of_three_bytes_are_still_sequential() -> None:
    """From 8192 records on a delta takes three bytes."""
    data = data_of(alike(20_000, 1, 0))
    assert walk(data, 20_000) == Walked(0, 0, is_sequential=True, has_null_key=False)
    swapped = alike(20_000, 1, 0)
    swapped[19_000], swapped[19_001] = swapped[19_001], swapped[19_000]
    assert not walk(data_of(swapped), 20_000).is_sequential


@pytest.mark.parametrize("at", [0, 1, 30, 63, 64, 100, 199])
def test_one_odd_offset_in_a_run_is_seen(at: int) -> None:
    """Also where its bytes have the width of its neighbours."""
    records = alike(200, 10, 1)
    records[at] = records[at]._replace(offset=records[at].offset + 1)
    data = data_of(records)
    assert not walk(data, 200).is_sequential
    check_agreement(data, 200)


@pytest.mark.parametrize("at", [0, 9, 50, 199])
def test_one_record_that_differs_inside_a_run_is_seen(at: int) -> None:
    """A null key, the earliest time, the latest time: in the middle of records that look alike."""
    records = alike(200, 10, 0)
    records[at] = Record(at, 0, None, b"v" * 13)
    data = data_of(records)
    assert walk(data, 200).has_null_key
    check_agreement(data, 200)
    for time_ms in (-60, 60, -100_000, 100_000):
        records[at] = Record(at, time_ms, b"key", b"v" * 10)
        data = data_of(records)
        assert time_ms in walk(data, 200)[:2]
        check_agreement(data, 200)


record = st.builds(
    Record,
    st.integers(0, 20_000),
    st.integers(-(2**40), 2**40) | st.integers(0, 200),
    st.none() | st.binary(max_size=100),
    st.none() | st.binary(max_size=300),
    st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=150)), max_size=3).map(tuple),
)


@pytest.mark.slow
@settings(max_examples=100)
@given(st.lists(record, min_size=1, max_size=40), st.integers(1, 20))
def test_both_readers_agree_on_any_records(records: list[Record], times: int) -> None:
    """Mixed sizes, headers, nulls, and repeated so that runs begin and end anywhere."""
    data = bytearray()
    for each in records * times:
        write_record(data, each, 0, 0)
    check_agreement(bytes(data), len(records) * times)


@pytest.mark.slow
@settings(max_examples=300)
@given(st.data())
def test_both_readers_agree_on_damaged_records(draw: st.DataObject) -> None:
    """One byte changed, cut or added anywhere in a run: refused by both, or read alike by both."""
    headers = draw.draw(st.sampled_from([(), (("h", b"1"),)]))
    records = [each._replace(headers=headers) for each in alike(30, draw.draw(st.integers(0, 80)), 1)]
    data = bytearray(data_of(records))
    position = draw.draw(st.integers(0, len(data) - 1))
    what = draw.draw(st.sampled_from(["change", "cut", "add"]))
    if what == "change":
        data[position] = draw.draw(st.integers(0, 255))
    elif what == "cut":
        del data[position : position + draw.draw(st.integers(1, 40))]
    else:
        data.insert(position, draw.draw(st.integers(0, 255)))
    check_agreement(bytes(data), 30)


def body(*parts: bytes) -> bytes:
    """A record with its size in front."""
    joined = b"".join(parts)
    output = bytearray()
    write_varint(output, len(joined))
    return bytes(output) + joined


BAD = {
    "negative size": b"\x01\0\0\0\2k\2v\0",
    "size beyond the end": b"\x40\0\0\0\2k\2v\0",
    "size too small": b"\x08\0\0\0\2k\2v\0",
    "bytes left in the record": body(b"\0\0\0\2k\2v\0ab"),
    "key beyond the record": body(b"\0\0\0\x20k\2v\0"),
    "value beyond the record": body(b"\0\0\0\2k\x40v\0"),
    "negative header count": body(b"\0\0\0\2k\2v\1"),
    "more headers than bytes": body(b"\0\0\0\2k\2v\x40"),
    "header without a key": body(b"\0\0\0\2k\2v\2\1\2x"),
    "header value beyond the record": body(b"\0\0\0\2k\2v\2\2h\x20"),
    "headers cut short": body(b"\0\0\0\2k\2v\4\2h\2x"),
    "varint of six bytes": body(b"\0\0\0\x82\x80\x80\x80\x80\x00k\2v\0"),
    "timestamp of eleven bytes": body(b"\0" + b"\x80" * 10 + b"\0\0\2k\2v\0"),
    "nothing but attributes": body(b"\0"),
    "an empty record": body(b""),
    "no record": b"",
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_malformed_records_are_refused(bad: bytes) -> None:
    """Alone and after a good one (core D.2 V10)."""
    good = body(b"\0\0\0\2k\2v\0")
    for data, count in ((bad, 1), (good + bad, 2), (good * 20 + bad, 21)):
        with pytest.raises(MalformedRecordsError):
            walk(data, count)
        with pytest.raises(MalformedRecordsError):
            list(spans(data, count))


@pytest.mark.parametrize(
    "odd",
    [
        body(b"\0\0\0\3\2v\0"),
        body(b"\0\0\0\2k\5\0"),
        body(b"\x7f\0\0\2k\2v\0"),
        body(b"\0\x80\0\x80\0\x82\0k\x82\x80\0v\x80\0"),
        body(b"\0\0\0\2k\2v\2\2h\3"),
    ],
    ids=["key of size -2", "value of size -3", "attributes", "padded varints", "header value of size -2"],
)
def test_odd_records_are_taken_as_kafka_takes_them(odd: bytes) -> None:
    """Any negative size is null where null may be, attributes mean nothing, varints may be padded."""
    check_agreement(odd, 1)
    check_agreement(odd * 20, 20)
    assert walk(odd, 1).is_sequential


@pytest.mark.parametrize("count", [0, 2, 19, 21, 2**31 - 1])
def test_the_count_must_be_that_of_the_records(count: int) -> None:
    """Twenty records, another count: refused without looking further than the bytes go."""
    with pytest.raises(MalformedRecordsError):
        walk(data_of(alike(20, 5, 0)), count)


def test_nothing_is_a_batch_of_no_records() -> None:
    """A batch of no records is read as none."""
    assert walk(b"", 0) == Walked(0, 0, is_sequential=True, has_null_key=False)


@given(st.integers(-(2**63), 2**63 - 1))
def test_varints_are_read_as_written(value: int) -> None:
    """Any int64, and any int32 in five bytes."""
    output = bytearray(b"x")
    write_varint(output, value)
    assert read_varint(output, 1, 10) == (value, len(output))
    if -(2**31) <= value < 2**31:
        assert read_varint(output, 1) == (value, len(output))
        assert len(output) <= 6


def test_bits_beyond_the_type_are_dropped() -> None:
    """Bits of a varint beyond its type are dropped, as Java's shifts do."""
    assert read_varint(b"\xff\xff\xff\xff\x7f", 0) == (-(2**31), 5)
    assert read_varint(b"\xff" * 9 + b"\x7f", 0, 10) == (-(2**63), 10)
    assert wrap_int64(2**63) == -(2**63)
    assert wrap_int64(-1) == -1
