"""Records between the formats (the answers of `tests/releases` hold the same against real brokers)."""

import pytest

from protocol.records.batch import RecordBatch
from protocol.records.compression import Codec
from protocol.records.conversion import batch_of_messages, messages_of_batches
from protocol.records.errors import BatchDamagedError, UnreadableCompressionError
from protocol.records.message_set import read_messages
from protocol.records.records import Record, build_batch, build_marker, read_records

RECORDS = [
    Record(40, 1000, b"k0", b"v" * 50),
    Record(41, 1001, None, b"v" * 50),
    Record(42, 1002, b"k2", None),
    Record(43, 1003, b"k3", b""),
]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
@pytest.mark.parametrize("magic", [0, 1])
def test_there_and_back(magic: int, codec: Codec) -> None:
    """Offsets, keys, values and codec stay; so do times, if the format has them."""
    messages = messages_of_batches(build_batch(RECORDS, codec=codec), magic, 0)
    assert messages[16] == magic
    expected = [record if magic else record._replace(timestamp_ms=-1) for record in RECORDS]
    assert list(read_messages(messages)) == expected
    batch = RecordBatch(batch_of_messages(messages))
    assert batch.codec == codec
    again = [record._replace(offset=record.offset + 40) for record in read_records(batch)]
    assert again == expected


def test_what_lies_before_the_offset_is_left_out_where_it_can_be() -> None:
    """A compressed message is whole or not there (RecordsUtil.downConvert)."""
    plain = messages_of_batches(build_batch(RECORDS), 1, 42)
    assert [record.offset for record in read_messages(plain)] == [42, 43]
    packed = messages_of_batches(build_batch(RECORDS, codec=Codec.GZIP), 1, 42)
    assert [record.offset for record in read_messages(packed)] == [40, 41, 42, 43]


def test_markers_and_headers_have_no_old_form() -> None:
    """They are left out; the records stay."""
    marker = build_marker(7, 0, committed=True, coordinator_epoch=0, timestamp_ms=5)
    named = build_batch([Record(0, 1, b"k", b"v", (("h", b"x"),))])
    (only,) = read_messages(messages_of_batches(bytes(marker) + bytes(named), 1, 0))
    assert (only.key, only.value, only.headers) == (b"k", b"v", ())


def test_zstd_has_no_old_form_at_all() -> None:
    """Records compressed with zstd cannot be down-converted (KIP-110)."""
    with pytest.raises(UnreadableCompressionError):
        messages_of_batches(build_batch(RECORDS, codec=Codec.ZSTD), 1, 0)


def test_nothing_makes_no_batch() -> None:
    """Neither does an incomplete message."""
    whole = messages_of_batches(build_batch(RECORDS[:1]), 1, 0)
    for messages in (b"", whole[:-1]):
        with pytest.raises(BatchDamagedError):
            batch_of_messages(messages)
