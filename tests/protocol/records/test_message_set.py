"""Messages of the formats before v2."""

import struct
import zlib

import pytest
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder

from protocol.records.compression import Codec
from protocol.records.conversion import messages_of_batches
from protocol.records.errors import BatchDamagedError, MalformedRecordsError, UnreadableCompressionError
from protocol.records.message_set import read_messages
from protocol.records.old_lz4 import with_true_checksum, with_wrong_checksum
from protocol.records.records import Record, build_batch


def message_set(magic: int, codec: Codec, count: int = 5) -> bytes:
    """What an old client would send."""
    builder = LegacyRecordBatchBuilder(magic, codec, 10_000)
    for index in range(count):
        builder.append(index, 1000 + index, b"k%d" % index if index else None, b"v" * index if index != 2 else None)
    return bytes(builder.build())


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY])
@pytest.mark.parametrize("magic", [0, 1])
def test_messages_are_read(magic: int, codec: Codec) -> None:
    """Plain ones, and those inside a compressed one."""
    messages = list(read_messages(message_set(magic, codec)))
    assert [(r.key, r.value) for r in messages] == [
        (None, b""),
        (b"k1", b"v"),
        (b"k2", None),
        (b"k3", b"vvv"),
        (b"k4", b"vvvv"),
    ]
    assert [r.timestamp_ms for r in messages] == ([1000, 1001, 1002, 1003, 1004] if magic else [-1] * 5)


def test_lz4_messages_of_magic_1_are_read() -> None:
    """Their frames are sound, unlike those of magic 0."""
    assert len(list(read_messages(message_set(1, Codec.LZ4)))) == 5


KAFKA_2_8 = bytes.fromhex("04224d1860401a")
"""How a frame begins that Kafka 2.8.2 wrote for message.format.version 0.9.0."""


def header_checksum(messages: bytes) -> int:
    """The position of the byte in a wrapper's lz4 frame without a content size."""
    return messages.index(KAFKA_2_8[:4]) + 6


def test_lz4_frames_of_magic_0_are_as_kafka_writes_them() -> None:
    """Their header checksum includes the magic number (KAFKA-3160)."""
    true = KAFKA_2_8[:-1] + b"\x82"
    assert (with_wrong_checksum(true), with_true_checksum(KAFKA_2_8)) == (KAFKA_2_8, true)
    assert [with_true_checksum(KAFKA_2_8[:size]) for size in range(7)] == [KAFKA_2_8[:size] for size in range(7)]
    messages = messages_of_batches(build_batch([Record(0, 0, None, b"v")], codec=Codec.LZ4), 0, 0)
    frame = messages[messages.index(KAFKA_2_8[:4]) :]
    assert with_wrong_checksum(with_true_checksum(frame)) == frame != with_true_checksum(frame)


@pytest.mark.parametrize("magic", [0, 1])
def test_the_header_checksum_of_lz4_is_checked_from_magic_1_on(magic: int) -> None:
    """In magic 0 brokers and clients disagree about it."""
    batch = build_batch([Record(number, 0, None, b"v" * number) for number in range(5)], codec=Codec.LZ4)
    messages = messages_of_batches(batch, magic, 0)
    assert len(list(read_messages(messages))) == 5
    at = header_checksum(messages)
    value = messages[at - 6 : at] + bytes((messages[at] ^ 1,)) + messages[at + 1 :]
    damaged = message(4, Codec.LZ4, value, magic)
    if magic:
        with pytest.raises(UnreadableCompressionError):
            list(read_messages(damaged))
    else:
        assert [record.value for record in read_messages(damaged)] == [b"v" * number for number in range(5)]


def message(offset: int, attributes: int, value: bytes, magic: int = 1, timestamp_ms: int = 77) -> bytes:
    """One message by hand, without a key."""
    body = struct.pack(">bb", magic, attributes) + (struct.pack(">q", timestamp_ms) if magic else b"")
    body += struct.pack(">ii", -1, len(value)) + value
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def gzipped(*inner: bytes) -> bytes:
    """The value of a wrapper message."""
    packer = zlib.compressobj(wbits=31)
    return packer.compress(b"".join(inner)) + packer.flush()


def test_inner_offsets_count_from_the_wrappers() -> None:
    """With magic 1 the wrapper has the offset of the last message inside."""
    wrapped = message(41, 1, gzipped(message(0, 0, b"a"), message(2, 0, b"b")))
    assert [record.offset for record in read_messages(wrapped)] == [39, 41]
    old = message(41, 1, gzipped(message(40, 0, b"a", 0), message(41, 0, b"b", 0)), 0)
    assert [record.offset for record in read_messages(old)] == [40, 41]


def test_the_wrappers_time_holds_with_log_append_time() -> None:
    """With attribute bit 3 of the wrapper, its timestamp is that of all inner messages."""
    wrapped = message(1, 9, gzipped(message(0, 0, b"a", 1, 5), message(1, 0, b"b", 1, 6)), timestamp_ms=900)
    assert [record.timestamp_ms for record in read_messages(wrapped)] == [900, 900]


def test_an_incomplete_tail_is_ignored() -> None:
    """An incomplete last message is ignored, because a fetch may end anywhere."""
    whole = message(0, 0, b"a")
    for cut in range(len(whole)):
        assert list(read_messages(whole + whole[:cut])) == [Record(0, 77, None, b"a")]


@pytest.mark.parametrize(("position", "value"), [(16, 2), (20, 9), (11, 5), (11, 16)])
def test_damaged_messages_are_reported(position: int, value: int) -> None:
    """Magic, contents, and sizes that cannot be."""
    damaged = bytearray(message(0, 0, b"value"))
    damaged[position] = value
    with pytest.raises(BatchDamagedError):
        list(read_messages(damaged))


def test_lengths_that_do_not_add_up_are_reported() -> None:
    """Lengths that do not add up are reported even with a valid checksum."""
    body = struct.pack(">bbqii", 1, 0, 5, -1, 100) + b"v"
    damaged = struct.pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body
    with pytest.raises(BatchDamagedError):
        list(read_messages(damaged))


@pytest.mark.parametrize(
    "inner",
    [(), (message(0, 1, gzipped(message(0, 0, b"v"))),), (message(0, 0, b"v"), message(1, 0, b"v", 0))],
    ids=["none", "compressed", "of another format"],
)
def test_what_a_compressed_message_may_not_hold_is_reported(inner: tuple[bytes, ...]) -> None:
    """A broker refuses it with INVALID_RECORD, and a consumer that reads it fails (DeepRecordsIterator)."""
    with pytest.raises(MalformedRecordsError):
        list(read_messages(message(1, 1, gzipped(*inner))))


def test_unreadable_compression_is_reported() -> None:
    """Unreadable compressed data inside a sound wrapper is reported."""
    with pytest.raises(UnreadableCompressionError):
        list(read_messages(message(0, 1, b"garbage")))
