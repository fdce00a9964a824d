"""Compressed batches that are checked in steps, since their records are not held: with the results of a small batch."""

import random
import tracemalloc
from dataclasses import replace

import pytest

from protocol.errors import ErrorCode
from protocol.records.batch import RecordBatch, read_span
from protocol.records.compression import Codec, StreamCompressor, compress, decompress, pieces
from protocol.records.record_portions import LongBegin, LongEnd, LongPart, Portion, portions
from protocol.records.records import Record, begin_record, build_batch, frame_batch, read_records, record_bytes
from storage.append_errors import RecordsRejectedError
from storage.log.config import LogConfig
from storage.log.large_batches import check_in_steps, in_one_go
from tests.storage.validating import COMPRESSING, HOUR, NOW, PLAIN, append

MIB = 1 << 20


def noise(size: int) -> bytes:
    """Bytes that no codec makes shorter."""
    return random.Random(size).randbytes(size)


def large(codec: int, count: int = 3, size: int = 3 * MIB, key: bytes | None = b"k") -> bytearray:
    """A batch of several MiB that is some kilobytes as sent."""
    return build_batch([Record(index, NOW + index, key, bytes(size)) for index in range(count)], codec=codec)


def framed(data: bytes | bytearray, count: int, codec: int) -> bytearray:
    """A batch of records that are written already."""
    return frame_batch(
        data,
        count,
        base_offset=0,
        last_offset_delta=count - 1,
        base_timestamp_ms=NOW,
        max_timestamp_ms=NOW,
        codec=codec,
    )


def refused(batch: bytearray, config: LogConfig = PLAIN) -> ErrorCode:
    """The error of a batch that must not pass, though it is not too large."""
    with pytest.raises(RecordsRejectedError) as caught:
        append(batch, config, limit=1 << 31)
    return caught.value.code


def in_steps(batch: bytes | bytearray, config: LogConfig = PLAIN, limit: int = 1 << 40) -> RecordBatch | None:
    """What the steps make of a batch, which may be a small one."""
    return in_one_go(check_in_steps(RecordBatch(batch), config, NOW, "orders-3", limit)).rebuilt


@pytest.mark.parametrize("codec", list(Codec))
def test_pieces_are_the_stream(codec: Codec) -> None:
    """Joined they are what decompression at once returns; a reader may stop early."""
    data = noise(300_000) + bytes(3 * MIB) + noise(10)
    packed = bytes(compress(codec, data))
    assert b"".join(pieces(codec, packed)) == data == bytes(decompress(codec, packed))
    some = pieces(codec, packed)
    assert data.startswith(bytes(next(some)))
    some.close()


@pytest.mark.parametrize("codec", COMPRESSING)
def test_a_stream_of_many_pieces_compresses(codec: Codec) -> None:
    """A stream is compressed from pieces of any size."""
    data = noise(100_000) + bytes(9 * MIB)
    compressor = StreamCompressor(codec)
    for start in range(0, len(data), 70_001):
        compressor.add(data[start : start + 70_001])
    packed = compressor.finish()
    assert len(packed) < 600_000
    assert b"".join(pieces(codec, packed)) == data


def mixed(seed: int, count: int) -> list[Record]:
    """Records of all sizes, from none to several portions, with keys, nulls and headers."""
    chance = random.Random(seed)
    records = []
    for index in range(count):
        size = chance.choice((0, 5, 5, 5, 5, 63, 64, 200, 9000, 65_536, 70_000, 300_000))
        key = chance.choice((None, b"key", bytes(chance.choice((1, 70_000)))))
        headers = [("h" * chance.choice((0, 1, 70_000)), chance.choice((None, b"", bytes(5000))))] * chance.choice(
            (0, 0, 0, 1, 3)
        )
        records.append(Record(index, NOW + chance.randrange(-900, 900), key, chance.randbytes(size), headers))
    return records


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY])
def test_portions_are_the_records(seed: int, codec: Codec) -> None:
    """All of them in order: those in a portion as they are, long ones as what they begin with and their body."""
    sent = mixed(seed, 60)
    batch = RecordBatch(build_batch(sent, codec=codec))
    data = record_bytes(batch)
    seen = 0
    ends: list[int] = []
    for each in portions(codec, batch.records_view, 60, most=1 << 40, most_in_one=1 << 40):
        if isinstance(each, Portion):
            assert len(each.data) < 130_000
            assert data[seen : seen + each.stop] == each.data[: each.stop]
            seen += each.stop
            ends += range(each.first, each.first + each.records)
        elif isinstance(each, LongBegin):
            span = read_span(data, seen)
            assert (each.timestamp_delta, each.body_size) == (span.timestamp_delta, span.end - span.body_position)
            seen = span.body_position
        elif isinstance(each, LongPart):
            assert data[seen : seen + len(each.data)] == each.data
            seen += len(each.data)
        elif isinstance(each, LongEnd):
            ends.append(each.at)
            assert each.span.key_size == (-1 if sent[each.at].key is None else len(sent[each.at].key or b""))
    assert (seen, ends) == (len(data), list(range(60)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("codec", COMPRESSING)
@pytest.mark.parametrize("topic", ["producer", "uncompressed", "lz4", "gzip", "snappy"])
def test_the_steps_find_what_validation_at_once_finds(seed: int, codec: Codec, topic: str) -> None:
    """The same records and header, or the same error, for the same batch, topic and time."""
    chance = random.Random(seed)
    sent = mixed(seed, 20)
    sent = [each if chance.random() < 0.9 else each._replace(timestamp_ms=NOW + 2 * HOUR) for each in sent]
    if seed % 2:
        sent = [each._replace(timestamp_ms=NOW + 5, key=each.key or b"k") for each in sent]
    batch = bytes(build_batch(sent, codec=codec, producer_id=5, producer_epoch=0, base_sequence=0))
    config = LogConfig(compression_type=topic, cleanup_policy=("compact",), max_message_bytes=1 << 30)
    if not seed % 2:
        with pytest.raises(RecordsRejectedError) as held:
            append(batch, config, limit=1 << 30)
        with pytest.raises(RecordsRejectedError) as stepped:
            in_steps(batch, config)
        assert (stepped.value.code, stepped.value.message) == (held.value.code, held.value.message)
        assert stepped.value.record_errors == held.value.record_errors != ()
        return
    at_once = append(batch, config, limit=1 << 30)
    rebuilt = in_steps(batch, config)
    if topic == codec.name.lower() or topic == "producer":
        assert rebuilt is None
        return
    assert rebuilt is not None
    rebuilt.set_max_timestamp(NOW + 5, log_append_time=False)
    rebuilt.assign(100, 7)
    assert list(read_records(rebuilt)) == list(read_records(at_once))
    assert bytes(rebuilt.view[21:61]) == bytes(at_once.view[21:61])


@pytest.mark.slow
@pytest.mark.parametrize("codec", COMPRESSING)
@pytest.mark.parametrize("topic", ["producer", "lz4", "zstd"])
def test_a_large_batch_is_taken(codec: Codec, topic: str) -> None:
    """Of 60 MiB, and one of 150, which a broker of Kafka takes too; nothing of the kind is held meanwhile."""
    count = 50 if (codec, topic) == (Codec.ZSTD, "producer") else 20
    sent = large(codec, count=count)
    assert len(sent) < 11 * MIB
    config = LogConfig(compression_type=topic, max_message_bytes=16 * MIB)
    tracemalloc.start()
    batch = append(sent, config, limit=1 << 31)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (batch.record_count, batch.base_offset, batch.max_timestamp_ms) == (count, 100, NOW + count - 1)
    assert peak < 40 * MIB
    batch_portions = portions(batch.codec, batch.records_view, count, most=1 << 31, most_in_one=1 << 31)
    assert [each.at for each in batch_portions if isinstance(each, LongEnd)] == list(range(count))


@pytest.mark.slow
def test_a_million_records_are_taken() -> None:
    """More than librdkafka ever puts into one batch, and Kafka takes them."""
    smallest = bytearray()
    for index in range(1_200_000):
        begin_record(smallest, 0, index, 3, 0)
        smallest += b"\1\1\0"  # no key, no value, no headers
    batch = framed(smallest, 1_200_000, Codec.ZSTD)
    assert append(batch, limit=1 << 31).record_count == 1_200_000
    assert refused(framed(smallest, 1_200_001, Codec.ZSTD)) is ErrorCode.INVALID_RECORD


@pytest.mark.slow
@pytest.mark.parametrize("codec", COMPRESSING)
def test_what_is_wrong_in_a_large_batch(codec: Codec) -> None:
    """Has the code that it has in a small one."""
    sound = large(codec)
    config = LogConfig(max_message_bytes=16 * MIB)
    data = record_bytes(RecordBatch(sound))

    def code(records_part: bytes | bytearray, count: int = 3, config: LogConfig = config) -> ErrorCode:
        return refused(framed(records_part, count, codec), config)

    assert append(bytes(sound), config, limit=1 << 31).record_count == 3
    assert code(data, 4) is ErrorCode.INVALID_RECORD
    assert code(data, 2) is ErrorCode.INVALID_RECORD
    assert code(data + b"\0") is ErrorCode.INVALID_RECORD
    assert code(data[:-1]) is ErrorCode.INVALID_RECORD
    assert code(data[: 5 * MIB]) is ErrorCode.INVALID_RECORD
    assert code(data[:6] + b"\x7f" + data[7:]) is ErrorCode.UNKNOWN_SERVER_ERROR  # an offset delta
    assert code(data, config=replace(config, compression_type="uncompressed", max_message_bytes=8 * MIB)) is (
        ErrorCode.MESSAGE_TOO_LARGE
    )
    keyless = large(codec, key=None)
    assert refused(keyless, replace(config, cleanup_policy=("compact",))) is ErrorCode.INVALID_RECORD
    small = replace(config, max_decompressed_message_bytes=3 * MIB)
    assert code(data, config=small) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", COMPRESSING)
def test_a_damaged_stream_of_a_large_batch(codec: Codec) -> None:
    """UNKNOWN_SERVER_ERROR, as of a small one."""
    sent = large(codec)
    packed = bytes(RecordBatch(sent).records_view)
    batch = frame_batch(
        packed[: len(packed) // 2],
        3,
        base_offset=0,
        last_offset_delta=2,
        base_timestamp_ms=NOW,
        max_timestamp_ms=NOW,
        attributes=codec,
    )
    assert refused(batch) is ErrorCode.UNKNOWN_SERVER_ERROR
