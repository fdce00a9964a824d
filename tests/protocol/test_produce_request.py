"""Produce requests, whose records are not copied, against kio's reader."""

import struct
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.index import load_request_schema
from kio.schema.index import schema_name_map
from kio.serial import entity_reader

from protocol.apis import ApiKey
from protocol.codec import BadFrame, decode_header, decode_request, encode_request
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

PARTITIONS = st.builds(
    PartitionProduceData, index=st.integers(0, 2**31 - 1), records=st.none() | st.binary(max_size=300)
)
REQUESTS = st.builds(
    ProduceRequest,
    transactional_id=st.none() | st.text(max_size=5),
    acks=st.sampled_from([-1, 0, 1, 2]),
    timeout_ms=st.integers(-1, 2**31 - 1),
    topic_data=st.lists(
        st.builds(
            TopicProduceData,
            name=st.text(max_size=5),
            partition_data=st.lists(PARTITIONS, max_size=3),
            topic_id=st.integers(1, 2**128 - 1).map(lambda n: UUID(int=n)),
        ),
        max_size=3,
    ),
)


@pytest.mark.slow
@pytest.mark.parametrize("version", sorted(schema_name_map["produce"]))
def test_reads_what_kio_reads(version: int) -> None:
    """Every version: the same request, its records being slices of the frame."""
    kio_reader = entity_reader(load_request_schema(ApiKey.PRODUCE, version))

    @given(REQUESTS)
    @settings(max_examples=40, deadline=None, database=None, derandomize=True)
    def check(request: ProduceRequest) -> None:
        frame = encode_request(ApiKey.PRODUCE, version, 1, "c", request)[4:]
        header = decode_header(frame)
        theirs: Any = kio_reader(frame, header.body_at)[0]
        ours = decode_request(bytearray(frame), header)
        flat = [(t.name, t.topic_id, p.index, p.records) for t in ours.topic_data for p in t.partition_data]
        assert flat == [
            (getattr(t, "name", ""), getattr(t, "topic_id", None), p.index, p.records)
            for t in theirs.topic_data
            for p in t.partition_data
        ]
        assert (ours.transactional_id, ours.acks, len(ours.topic_data)) == (
            theirs.transactional_id, theirs.acks, len(theirs.topic_data))  # fmt: skip
        assert ours.timeout_ms == theirs.timeout / timedelta(milliseconds=1)

    check()


def test_records_are_writable_slices_of_the_frame() -> None:
    """The log stamps offsets into what the socket has filled, and keeps it."""
    request = ProduceRequest(None, -1, 5, [TopicProduceData("foo", [PartitionProduceData(0, b"abc")])])
    for version in (3, 9):
        frame = bytearray(encode_request(ApiKey.PRODUCE, version, 1, "c", request)[4:])
        records = decode_request(frame, decode_header(frame)).topic_data[0].partition_data[0].records
        records[:1] = b"x"
        assert frame.count(b"xbc") == 1


def test_every_cut_is_a_bad_frame() -> None:
    """However short a Produce request is cut, it is refused, and nothing else is raised."""
    request = ProduceRequest("t", -1, 5, [TopicProduceData("foo", [PartitionProduceData(0, b"x" * 9)])])
    for version in (3, 9):
        frame = encode_request(ApiKey.PRODUCE, version, 1, "c", request)[4:]
        header = decode_header(frame)
        assert decode_request(bytearray(frame), header).acks == -1
        for size in range(header.body_at, len(frame)):
            with pytest.raises(BadFrame):
                decode_request(bytearray(frame[:size]), header)


@pytest.mark.parametrize("count", [2**31 - 1, -1, -(2**31)])
def test_impossible_counts_are_bad_frames(count: int) -> None:
    """An array longer than the bytes that are left, or null: refused before anything is made for it."""
    frame = encode_request(ApiKey.PRODUCE, 3, 1, "c", ProduceRequest(None, 1, 5))[4:]
    header = decode_header(frame)
    with pytest.raises(BadFrame):
        decode_request(bytearray(frame[:-4] + struct.pack(">i", count)), header)
