"""Snapshots of producer states: Kafka's bytes, and what is refused (transactions F.6, D.8)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import ErrorCode
from storage.producers.snapshot import SnapshotCorruptError, decode_snapshot, encode_snapshot
from storage.producers.state import BatchRange, Duplicate, ProducerEntry
from tests.storage.producing import TIME_MS, Partition

VECTOR = (
    "00010a63c3010000000100000000000003e80002000000040000000000000009000000040000018bcfe569f4ffffffff0000000000000005"
)
IN_TRANSACTION = ProducerEntry(1000, 2, (BatchRange(0, 4, 5, 9, 1_700_000_000_500),), -1, 1_700_000_000_500, 5)


def test_the_vector_is_written_and_read() -> None:
    """Kafka's example of a producer snapshot is written and read byte for byte."""
    assert encode_snapshot([IN_TRANSACTION]).hex() == VECTOR
    assert decode_snapshot(bytes.fromhex(VECTOR)) == [IN_TRANSACTION]


def test_only_the_last_batch_is_kept() -> None:
    """After a restart one batch is recognised (transactions DUP-06)."""
    partition = Partition()
    partition.produce(sequence=0, count=2)
    partition.produce(sequence=2, count=3)
    contents = encode_snapshot(partition.states.producers.values())
    partition.states.restore(decode_snapshot(contents), TIME_MS, 86_400_000)
    assert partition.check(sequence=2, count=3) == Duplicate(2, 4, TIME_MS)
    assert partition.refusal(sequence=0, count=2).code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert partition.produce(sequence=5) == 5


def test_an_entry_without_a_batch_has_none_afterwards() -> None:
    """A snapshot keeps a producer of which only a marker is left, without a batch."""
    entry = ProducerEntry(7, 3, (), 4, 99)
    assert decode_snapshot(encode_snapshot([entry])) == [entry]


def test_no_producers_make_an_empty_snapshot() -> None:
    """A snapshot without producers is ten bytes: version, checksum and a count of 0."""
    assert len(encode_snapshot([])) == 10
    assert decode_snapshot(encode_snapshot([])) == []


def test_expired_producers_are_not_restored_open_transactions_are() -> None:
    """Verification is not needed for what was open (transactions D.8, REC-01)."""
    partition = Partition()
    idle = ProducerEntry(1, 0, (BatchRange(0, 0, 0, 0, 5),), -1, 5)
    later = ProducerEntry(3, 0, (BatchRange(0, 0, 30, 30, 5),), -1, 5, 30)
    partition.states.restore([idle, later, IN_TRANSACTION], TIME_MS + 10**10, 1000)
    assert sorted(partition.states.producers) == [3, 1000]
    assert partition.states.first_unstable_offset == 5
    assert partition.states.has_open_transaction(1000, 2)
    assert partition.produce(pid=1000, epoch=2, sequence=5, transactional=True) == 0


def test_restoring_forgets_what_was_there() -> None:
    """A restored snapshot replaces the whole state."""
    partition = Partition(verification=False)
    partition.produce(pid=8, sequence=0, transactional=True)
    partition.guard(pid=9)
    partition.states.restore([], TIME_MS, 1000)
    assert not partition.states.producers
    assert partition.states.first_unstable_offset is None
    assert len(partition.states.verifications) == 0


@pytest.mark.parametrize("contents", [b"", bytes(9), bytes.fromhex(VECTOR)[:-1], bytes.fromhex(VECTOR) + b"\0"])
def test_snapshots_of_the_wrong_length_are_corrupt(contents: bytes) -> None:
    """Too short, or not as long as their count of entries needs."""
    with pytest.raises(SnapshotCorruptError):
        decode_snapshot(contents)


def test_another_version_is_corrupt() -> None:
    """A snapshot of any version but 1 is corrupt."""
    with pytest.raises(SnapshotCorruptError, match="version 2"):
        decode_snapshot(b"\0\2" + bytes.fromhex(VECTOR)[2:])


def test_every_flipped_bit_is_found() -> None:
    """Version, checksum, count or entry (transactions DSK-04)."""
    for position in range(len(VECTOR) // 2):
        for bit in range(8):
            damaged = bytearray.fromhex(VECTOR)
            damaged[position] ^= 1 << bit
            with pytest.raises(SnapshotCorruptError):
                decode_snapshot(bytes(damaged))


@st.composite
def entries(draw: st.DrawFn) -> ProducerEntry:
    """Any state that a snapshot can hold."""
    time_ms = draw(st.integers(-1, 2**62))
    batches: tuple[BatchRange, ...] = ()
    if draw(st.booleans()):
        last, delta, offset = (
            draw(st.integers(0, 2**31 - 1)),
            draw(st.integers(0, 2**31 - 1)),
            draw(st.integers(0, 2**62)),
        )
        batches = (BatchRange((last - delta) % 2**31, last, offset, offset + delta, time_ms),)
    return ProducerEntry(
        draw(st.integers(0, 2**63 - 1)),
        draw(st.integers(-1, 2**15 - 1)),
        batches,
        draw(st.integers(-1, 2**31 - 1)),
        time_ms,
        draw(st.none() | st.integers(0, 2**62)),
    )


@pytest.mark.slow
@given(st.lists(entries(), max_size=5))
def test_every_state_survives_the_round_trip(states: list[ProducerEntry]) -> None:
    """Every producer state, among them sequences that wrap, is read as it was written."""
    assert decode_snapshot(encode_snapshot(states)) == states
