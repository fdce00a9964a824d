"""Batches to be validated, and what becomes of them."""

import pytest

from protocol.records.batch import RecordBatch
from protocol.records.compression import Codec
from protocol.records.records import Record
from storage.append_errors import RecordsRejectedError
from storage.append_info import AppendOrigin
from storage.log.config import LogConfig
from storage.log.validation import validate_append

NOW = 1_700_000_000_000
HOUR = 3_600_000
PLAIN = LogConfig()
CODECS = list(Codec)
COMPRESSING = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]


def records(count: int = 3, key: bytes | None = b"k", time_ms: int = NOW) -> list[Record]:
    """Records of one batch."""
    return [Record(index, time_ms + index, key, b"value%d" % index, (("h", b"x"),)) for index in range(count)]


def stamped(batch: bytearray, position: int, value: int, size: int) -> bytearray:
    """The batch with one number of its header replaced and the checksum renewed."""
    batch[position : position + size] = value.to_bytes(size, "big", signed=True)
    batch[17:21] = RecordBatch(batch).compute_crc().to_bytes(4, "big")
    return batch


def append(
    batch: bytes | bytearray | memoryview,
    config: LogConfig = PLAIN,
    *,
    origin: AppendOrigin = AppendOrigin.CLIENT,
    limit: int = 1 << 20,
) -> RecordBatch:
    """Validate as the log would, at offset 100 and epoch 7."""
    return validate_append(
        RecordBatch(batch),
        config,
        base_offset=100,
        leader_epoch=7,
        now_ms=NOW,
        topic_partition="orders-3",
        origin=origin,
        decompressed_limit=limit,
    )


def refusal(
    batch: bytes | bytearray, config: LogConfig = PLAIN, *, origin: AppendOrigin = AppendOrigin.CLIENT
) -> RecordsRejectedError:
    """The error of a batch that must not pass."""
    with pytest.raises(RecordsRejectedError) as caught:
        append(batch, config, origin=origin)
    return caught.value
