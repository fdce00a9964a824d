"""Codecs: framings that Kafka reads and writes, and a lid on what comes out."""

import tracemalloc
import zlib
from contextlib import suppress

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.records.compression import Codec, compress, decompress
from protocol.records.errors import DecompressedTooLargeError, RecordsError, UnreadableCompressionError

COMPRESSING = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
XERIAL = bytes.fromhex("82534e41505059000000000100000001")


@settings(max_examples=40)
@given(st.sampled_from(Codec), st.binary(max_size=2000), st.integers(0, 60))
def test_what_was_compressed_comes_back(codec: Codec, data: bytes, times: int) -> None:
    """Small and large, from any kind of buffer."""
    data *= times
    packed = bytes(compress(codec, data))
    if packed:
        assert decompress(codec, packed) == data
        assert decompress(codec, memoryview(bytearray(packed))) == data


def test_uncompressed_data_is_not_copied() -> None:
    """Uncompressed data comes back as the very same object."""
    data = bytearray(b"records")
    assert compress(Codec.NONE, data) is data
    assert decompress(Codec.NONE, data) is data


def test_snappy_is_written_in_blocks_behind_a_header() -> None:
    """What Java's SnappyInputStream wants: 32 KiB blocks, each with its size (core D.4)."""
    packed = bytes(compress(Codec.SNAPPY, b"a" * 70_000))
    assert packed.startswith(XERIAL)
    sizes, position = [], 16
    while position < len(packed):
        size = int.from_bytes(packed[position : position + 4], "big")
        sizes.append(len(cramjam.snappy.decompress_raw(packed[position + 4 : position + 4 + size])))
        position += 4 + size
    assert sizes == [32_768, 32_768, 4_464]


def test_a_bare_snappy_block_is_read() -> None:
    """Librdkafka writes it without a header (core PRD-09)."""
    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(b"records"))) == b"records"


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4])
@pytest.mark.parametrize("rest", [b"\0", b"\0\1" * 40, b"\x1f\x8b\x08"])
def test_bytes_behind_the_end_of_a_stream_are_not_read(codec: Codec, rest: bytes) -> None:
    """As in Java; a stream that is cut short is no stream with bytes behind it."""
    packed = bytes(compress(codec, b"records" * 9_000))
    assert decompress(codec, packed + rest) == b"records" * 9_000
    for broken in (packed[:-5], packed[: len(packed) // 2] + rest):
        with pytest.raises(UnreadableCompressionError):
            decompress(codec, broken)


def test_members_joined_together_are_read_to_the_last_one() -> None:
    """GZIPInputStream tries a further member wherever the magic bytes are, if there are enough bytes for one."""
    member = bytes(compress(Codec.GZIP, b"one,"))
    assert decompress(Codec.GZIP, member + member + b"\1\2\3") == b"one,one,"
    with pytest.raises(UnreadableCompressionError):
        decompress(Codec.GZIP, member + member[:15] + b"\xff" * 30)


def test_snappy_streams_joined_together_are_read() -> None:
    """A header may come again, and a size cut short ends the stream, as in Java."""
    packed = bytes(compress(Codec.SNAPPY, b"one,"))
    assert decompress(Codec.SNAPPY, packed + bytes(compress(Codec.SNAPPY, b"two"))) == b"one,two"
    assert decompress(Codec.SNAPPY, packed + b"\0\0") == b"one,"


def test_lz4_frames_have_independent_blocks() -> None:
    """The only kind that Kafka reads; magic, version 01, 64 KiB blocks (core D.4)."""
    packed = bytes(compress(Codec.LZ4, b"a" * 200_000))
    assert packed[:4] == bytes.fromhex("04224d18")
    assert packed[4] >> 5 == 0b011
    assert packed[4] & 0b1101 == 0
    assert packed[5] == 0x40


def test_lz4_frames_with_linked_blocks_are_refused() -> None:
    """KafkaLZ4BlockInputStream cannot read them."""
    compressor = cramjam.lz4.Compressor(block_linked=True)
    compressor.compress(b"a" * 200_000)
    with pytest.raises(UnreadableCompressionError):
        decompress(Codec.LZ4, bytes(compressor.finish()))


@pytest.mark.parametrize(
    ("codec", "levels"), [(Codec.GZIP, (-1, 1, 9)), (Codec.LZ4, (1, 9, 12, 17)), (Codec.ZSTD, (-131_072, 3, 22))]
)
def test_every_level_of_kafka_is_taken(codec: Codec, levels: tuple[int, ...]) -> None:
    """The ends of the ranges of compression.*.level."""
    for level in levels:
        assert decompress(codec, bytes(compress(codec, b"data" * 500, level))) == b"data" * 500


def test_gzip_members_joined_together_are_read() -> None:
    """As GZIPInputStream does, although the size in the trailer is only that of the last."""
    packed = bytes(compress(Codec.GZIP, b"a" * 300_000)) + bytes(compress(Codec.GZIP, b"b"))
    assert decompress(Codec.GZIP, packed) == b"a" * 300_000 + b"b"


@pytest.mark.parametrize("codec", COMPRESSING)
def test_garbage_is_unreadable(codec: Codec) -> None:
    """Garbage and a stream that ends early raise the error of unreadable data."""
    with pytest.raises(UnreadableCompressionError):
        decompress(codec, b"\xff" * 50)
    packed = bytes(compress(codec, bytes(range(256)) * 4))
    with pytest.raises(UnreadableCompressionError):
        decompress(codec, packed[: len(packed) // 2])


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_an_empty_stream_is_unreadable(codec: Codec) -> None:
    """An empty stream is unreadable in codecs that demand a header."""
    with pytest.raises(UnreadableCompressionError):
        decompress(codec, b"")


def test_an_empty_zstd_stream_is_nothing() -> None:
    """A zstd stream without a frame decompresses to no bytes."""
    assert decompress(Codec.ZSTD, b"") == b""


@pytest.mark.parametrize("code", [5, 6, 7])
def test_undefined_codes_are_unreadable(code: int) -> None:
    """There is nothing to read them with."""
    with pytest.raises(UnreadableCompressionError):
        decompress(code, b"data")


@pytest.mark.parametrize("codec", COMPRESSING)
def test_the_limit_is_exact(codec: Codec) -> None:
    """What just fits is taken, one byte more is not."""
    packed = bytes(compress(codec, bytes(500_000)))
    assert len(decompress(codec, packed, 500_000)) == 500_000
    with pytest.raises(DecompressedTooLargeError) as caught:
        decompress(codec, packed, 499_999)
    assert caught.value.limit == 499_999


@pytest.mark.parametrize("codec", COMPRESSING)
def test_a_bomb_does_not_grow_memory_beyond_the_limit(codec: Codec) -> None:
    """64 MiB in a few kilobytes, allowed to become 1 MiB."""
    bomb = bytes(compress(codec, bytes(64 << 20)))
    tracemalloc.start()
    try:
        with pytest.raises(DecompressedTooLargeError):
            decompress(codec, bomb, 1 << 20)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 << 20


def test_a_size_that_lies_is_found_out() -> None:
    """A gzip trailer and a snappy preamble that announce too little or too much."""
    packed = bytearray(compress(Codec.GZIP, b"a" * 1000))
    packed[-4:] = (2**32 - 1).to_bytes(4, "little")
    with pytest.raises(RecordsError):
        decompress(Codec.GZIP, bytes(packed), 1 << 20)
    raw = bytearray(cramjam.snappy.compress_raw(b"a" * 100))
    raw[0] = 5
    with pytest.raises(UnreadableCompressionError):
        decompress(Codec.SNAPPY, bytes(raw))
    with pytest.raises(DecompressedTooLargeError):
        decompress(Codec.SNAPPY, b"\xff\xff\xff\xff\x0f" + b"\0" * 20, 1 << 20)


def test_other_tools_read_what_was_written() -> None:
    """Python's own zlib reads what is compressed as gzip."""
    assert zlib.decompress(compress(Codec.GZIP, b"records"), 31) == b"records"


@pytest.mark.slow
@settings(max_examples=400)
@given(st.sampled_from(COMPRESSING), st.data())
def test_damaged_streams_raise_nothing_undeclared(codec: Codec, data: st.DataObject) -> None:
    """Any byte changed or cut away: the same bytes, others, or a RecordsError; never more than the limit."""
    packed = bytearray(compress(codec, b"some json %d, " * data.draw(st.integers(1, 100))))
    for _ in range(data.draw(st.integers(1, 3))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    packed = packed[: data.draw(st.integers(0, len(packed)))]
    with suppress(RecordsError):
        assert len(decompress(codec, bytes(packed), 100_000)) <= 100_000
