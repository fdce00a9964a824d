"""What a Produce request's bytes may be: core D.1 P1 to P6."""

import pytest

from protocol.errors import ErrorCode
from protocol.records.compression import Codec
from protocol.records.records import build_batch
from storage.append_errors import RecordsRejectedError, RequestRejectedError
from storage.log.validation import check_partition_records, scan_first_batch
from tests.storage.validating import records, refusal, stamped


def test_one_whole_batch_passes() -> None:
    """It is looked at where it lies; what cannot become a second one is cut off (core D.1 P4)."""
    batch = build_batch(records())
    for tail in (b"", bytes(11), batch[:-1], batch[:17]):
        batch_info = check_partition_records(memoryview(batch + tail))
        assert (batch_info.position, batch_info.size, batch_info.record_count) == (0, len(batch), 3)


@pytest.mark.parametrize("data", [b"", bytes(10), build_batch(records())[:16], build_batch(records())[:-1]])
def test_no_whole_batch_is_an_invalid_record(data: bytes) -> None:
    """Nothing, or a part of one (core D.1 P3, PRD-03)."""
    with pytest.raises(RecordsRejectedError) as caught:
        check_partition_records(data)
    assert (caught.value.code, caught.value.message) == (ErrorCode.INVALID_RECORD, None)
    assert scan_first_batch(data) is False


def test_a_second_batch_is_an_invalid_record() -> None:
    """Exactly one batch per partition (core D.1 P4, PRD-03; transactions SHAPE-01)."""
    with pytest.raises(RecordsRejectedError) as caught:
        check_partition_records(build_batch(records()) * 2)
    assert caught.value.code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("tail", [bytes(12), bytes(30), build_batch(records())[:16] + b"\3" + bytes(60)])
def test_a_tail_that_can_be_no_batch_is_corrupt(tail: bytes) -> None:
    """A length below 14 or an unknown magic behind the first batch (core D.1 P4)."""
    with pytest.raises(RecordsRejectedError) as caught:
        check_partition_records(build_batch(records()) + tail)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("magic", [0, 1])
def test_old_magic_is_an_invalid_record(magic: int) -> None:
    """Only v2 may be sent (core PRD-03)."""
    batch = build_batch(records())
    batch[16] = magic
    assert scan_first_batch(batch) is False
    with pytest.raises(RecordsRejectedError) as caught:
        check_partition_records(batch)
    assert caught.value.code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(
    ("position", "value", "message"),
    [
        (11, 13, "Record size 13 is less than the minimum record overhead (14)"),
        (16, 3, "Invalid magic found in record: 3"),
    ],
)
def test_a_first_batch_that_cannot_be_scanned_fails_the_request(position: int, value: int, message: str) -> None:
    """Every partition gets CORRUPT_MESSAGE (core D.1 P1, PRD-04)."""
    batch = build_batch(records(1, None))
    batch[8:12] = bytes(4) if position == 11 else batch[8:12]
    batch[position] = value
    with pytest.raises(RequestRejectedError) as caught:
        scan_first_batch(batch)
    assert (caught.value.code, caught.value.message) == (ErrorCode.CORRUPT_MESSAGE, message)


def test_the_scan_finds_transactional_batches() -> None:
    """The first batch of every partition is looked at (transactions D.1 G1)."""
    assert scan_first_batch(build_batch(records(), transactional=True, producer_id=1, producer_epoch=0)) is True
    assert scan_first_batch(memoryview(build_batch(records()))) is False


def test_a_batch_shorter_than_a_header_is_corrupt() -> None:
    """Long enough to be scanned, too short to be one (core D.2 V3)."""
    batch = build_batch(records())[:40]
    batch[8:12] = (28).to_bytes(4, "big")
    assert scan_first_batch(batch) is False
    with pytest.raises(RecordsRejectedError) as caught:
        check_partition_records(batch)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE


def test_zstd_came_with_produce_v7() -> None:
    """Older versions get UNSUPPORTED_COMPRESSION_TYPE (core D.1 P6, PRD-10)."""
    batch = build_batch(records(), codec=Codec.ZSTD)
    assert check_partition_records(batch, zstd_allowed=True).codec == Codec.ZSTD
    with pytest.raises(RecordsRejectedError) as caught:
        check_partition_records(batch, zstd_allowed=False)
    assert caught.value.code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert check_partition_records(build_batch(records(), codec=Codec.LZ4), zstd_allowed=False).codec == Codec.LZ4


@pytest.mark.parametrize("code", [5, 6, 7])
def test_undefined_codecs_fail_the_whole_old_request(code: int) -> None:
    """Before v7 -1 everywhere, later -1 on the partition, when it is appended (core D.1 P6, D.2 V4, PRD-11)."""
    batch = stamped(build_batch(records()), 21, code, 2)
    with pytest.raises(RequestRejectedError) as caught:
        check_partition_records(batch, zstd_allowed=False)
    assert caught.value.code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert check_partition_records(batch).codec == code
    error = refusal(batch)
    assert (error.code, error.message, error.reports_log_start) == (ErrorCode.UNKNOWN_SERVER_ERROR, None, True)
