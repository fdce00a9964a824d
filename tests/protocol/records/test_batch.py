"""The header of a v2 batch: read, stamped in place, found in a buffer."""

from struct import error as struct_error

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.records.batch import (
    RecordBatch,
    batch_size,
    batches,
    checked_batches,
    decrement_sequence,
    increment_sequence,
)
from protocol.records.errors import BatchDamagedError
from protocol.records.records import Record, build_batch

COMMIT = (
    "000000000000000a000000420000000302767fbc2c0030000000000000018bcfe56be80000018bcfe56be8"
    "00000000000003e80001ffffffff000000012000000008000000010c00000000000700"
)
DATA = (
    "00000000000000050000003a0000000302fa38511e0010000000000000018bcfe569f40000018bcfe569f4"
    "00000000000003e80002000000000000000110000000026b027600"
)


def three(base_offset: int = 0, **options: int | bool) -> bytearray:
    """A batch of three records."""
    records = [Record(base_offset + index, 1000 + index, b"k", b"v") for index in range(3)]
    return build_batch(records, **options)  # type: ignore[arg-type]


def test_the_header_of_the_vector_is_read() -> None:
    """Every field of a transactional data batch (transactions F.5)."""
    batch = RecordBatch(bytes.fromhex(DATA))
    assert (batch.base_offset, batch.last_offset, batch.next_offset, batch.size) == (5, 5, 6, 70)
    assert (batch.partition_leader_epoch, batch.magic, batch.codec, batch.record_count) == (3, 2, 0, 1)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.last_sequence) == (1000, 2, 0, 0)
    assert (batch.base_timestamp_ms, batch.max_timestamp_ms) == (1_700_000_000_500, 1_700_000_000_500)
    assert batch.is_transactional
    assert not batch.is_control
    assert not batch.is_log_append_time
    assert not batch.has_delete_horizon
    assert batch.has_producer_id
    assert batch.crc_ok()


def test_a_batch_is_read_where_it_lies() -> None:
    """Position, end and views refer to the larger buffer, which is not copied."""
    buffer = bytearray(b"junk") + bytes.fromhex(COMMIT) + b"tail"
    batch = RecordBatch(memoryview(buffer), 4)
    assert (batch.position, batch.end, batch.size) == (4, 82, 78)
    assert batch.view == bytes.fromhex(COMMIT)
    assert batch.records_view == bytes.fromhex(COMMIT)[61:]
    assert batch.is_control
    assert batch.last_sequence == -1
    buffer[4] = 1
    assert batch.view[0] == 1


def test_a_header_alone_is_enough_to_look_at() -> None:
    """61 bytes make a view; fewer do not."""
    header = bytes.fromhex(COMMIT)[:61]
    batch = RecordBatch(header)
    assert batch.base_offset == 10
    assert not batch.is_complete
    assert not batch.crc_ok()
    with pytest.raises(struct_error):
        RecordBatch(header[:60])


def test_offset_and_leader_epoch_lie_outside_the_checksum() -> None:
    """Stamping them leaves the CRC valid and everything else as sent (core D.3)."""
    buffer = three()
    batch = RecordBatch(buffer)
    before = buffer[16:]
    batch.assign(2**40, 7)
    again = RecordBatch(buffer)
    assert (batch.base_offset, batch.partition_leader_epoch) == (again.base_offset, again.partition_leader_epoch)
    assert (again.base_offset, again.partition_leader_epoch, again.last_offset) == (2**40, 7, 2**40 + 2)
    assert buffer[16:] == before
    assert again.crc_ok()


@pytest.mark.parametrize("log_append_time", [False, True])
def test_stamping_the_maximum_timestamp_renews_the_checksum(log_append_time: bool) -> None:
    """Attribute bit 3 and the maximum timestamp change, the base timestamp stays (core D.3)."""
    buffer = three()
    batch = RecordBatch(buffer)
    batch.set_max_timestamp(5000, log_append_time=log_append_time)
    again = RecordBatch(buffer)
    assert again.crc_ok()
    assert (again.max_timestamp_ms, again.base_timestamp_ms) == (5000, 1000)
    assert again.is_log_append_time is batch.is_log_append_time is log_append_time
    assert (again.crc, again.attributes) == (batch.crc, batch.attributes)


def test_a_header_that_need_not_change_is_not_touched() -> None:
    """Unknown attribute bits survive unless the header is stamped anyway."""
    buffer = three()
    buffer[21] = 0x40
    batch = RecordBatch(buffer)
    buffer[17:21] = batch.compute_crc().to_bytes(4, "big")
    before = bytes(buffer)
    RecordBatch(buffer).set_max_timestamp(1002, log_append_time=False)
    assert buffer == before
    RecordBatch(buffer).set_max_timestamp(1003, log_append_time=False)
    assert RecordBatch(buffer).attributes == 0
    assert RecordBatch(buffer).crc_ok()


def test_sequences_wrap_at_two_to_the_31() -> None:
    """After 2147483647 comes 0, and back (transactions D.4)."""
    batch = RecordBatch(three(producer_id=1, producer_epoch=0, base_sequence=2**31 - 2))
    assert batch.last_sequence == 0
    assert increment_sequence(2**31 - 1, 1) == 0
    assert decrement_sequence(0, 1) == 2**31 - 1
    assert decrement_sequence(increment_sequence(2**31 - 3, 10), 10) == 2**31 - 3


def test_batches_stops_before_an_incomplete_tail() -> None:
    """Whole batches are yielded in order, a part of one is not."""
    whole = three() + three(3)
    for cut in (1, 11, 12, 60, 61, len(three()) - 1):
        complete = list(batches(whole + three(6)[:cut]))
        assert [batch.base_offset for batch in complete] == [0, 3]
    assert [batch.position for batch in batches(whole, len(three()))] == [len(three())]
    assert list(batches(b"")) == []


def test_batches_stops_before_what_is_no_v2_batch() -> None:
    """Another magic or an impossible length ends the walk."""
    damaged = three(3)
    damaged[16] = 1
    assert len(list(batches(three() + damaged))) == 1
    damaged = three(3)
    damaged[8:12] = (5).to_bytes(4, "big")
    assert len(list(batches(three() + damaged))) == 1


def flipped(batch: bytearray) -> bytearray:
    """One bit of the last byte is wrong."""
    batch[-1] ^= 1
    return batch


def with_bytes(batch: bytearray, position: int, value: bytes) -> bytearray:
    """The batch with some bytes overwritten."""
    batch[position : position + len(value)] = value
    return batch


@pytest.mark.parametrize(
    ("damaged", "reason"),
    [
        (flipped(three(3)), "checksum mismatch"),
        (three(3)[:-1], "of .* bytes are present"),
        (three(3)[:30], "fewer than a header"),
        (three(3)[:7], "fewer than a header"),
        (with_bytes(three(3), 16, b"\1"), "magic 1"),
        (with_bytes(three(3), 8, (20).to_bytes(4, "big")), "a length field of 20"),
    ],
)
def test_damage_is_reported_with_its_place(damaged: bytearray, reason: str) -> None:
    """Recovery learns where to cut, people learn why (core F.7)."""
    whole = three()
    batches: list[RecordBatch] = []
    with pytest.raises(BatchDamagedError, match=reason) as caught:
        batches.extend(checked_batches(whole + damaged))
    assert [batch.base_offset for batch in batches] == [0]
    assert caught.value.position == len(whole)
    assert "damaged batch at byte" in str(caught.value)


def test_sound_batches_pass_the_check() -> None:
    """The check of sound batches reports nothing."""
    sound = list(checked_batches(three() + three(3)))
    assert [batch.base_offset for batch in sound] == [0, 3]


def test_the_size_of_a_batch_is_known_from_its_first_twelve_bytes() -> None:
    """With any magic; -1 before the length field has come."""
    assert batch_size(three()[:12]) == len(three())
    assert batch_size(three()[:11]) == -1


@given(st.integers(0, 2**63 - 2**31), st.integers(-1, 2**31 - 1), st.integers(-1, 2**62), st.booleans())
def test_what_is_stamped_is_read_back(offset: int, epoch: int, time_ms: int, log_append_time: bool) -> None:
    """For any offset, epoch and time, with a valid checksum."""
    buffer = three()
    batch = RecordBatch(buffer)
    batch.assign(offset, epoch)
    batch.set_max_timestamp(time_ms, log_append_time=log_append_time)
    again = RecordBatch(bytes(buffer))
    assert again.crc_ok()
    assert (again.base_offset, again.partition_leader_epoch, again.max_timestamp_ms) == (offset, epoch, time_ms)
    assert again.is_log_append_time is log_append_time
    assert repr(again) == repr(batch)
