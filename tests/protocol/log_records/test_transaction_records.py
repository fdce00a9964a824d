"""``__transaction_state`` byte for byte, by the vectors of transactions F.2."""

import dataclasses
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.log_records.transaction import (
    TransactionRecord,
    TransactionState,
    TransactionTombstone,
    decode,
    encode,
)

S = TransactionState
FOO = frozenset({("foo", 0), ("foo", 1)})
T = 1_700_000_000_000
KEY = "000000066d792d74786e"


def record(
    epoch: int, state: S, partitions: frozenset[tuple[str, int]] | None, update: int, start: int, **more: int
) -> TransactionRecord:
    """A record of my-txn, with times counted from T."""
    return TransactionRecord(
        "my-txn",
        more.pop("pid", 1000),
        epoch,
        60000,
        state,
        partitions,
        T + update,
        T + start if start >= 0 else -1,
        **more,
    )


VECTORS = {
    "v0 Empty": (
        record(0, S.EMPTY, None, 0, -1, value_version=0),
        "000000000000000003e800000000ea6000ffffffff0000018bcfe56800ffffffffffffffff",
    ),
    "v0 Ongoing": (
        record(0, S.ONGOING, FOO, 500, 500, value_version=0),
        "000000000000000003e800000000ea6001000000010003666f6f0000000200000000000000010000018bcfe569f40000018bcfe569f4",
    ),
    "v0 CompleteAbort": (
        record(1, S.COMPLETE_ABORT, frozenset(), 900, 500, value_version=0),
        "000000000000000003e800010000ea6005000000000000018bcfe56b840000018bcfe569f4",
    ),
    "v1 Empty": (
        record(0, S.EMPTY, None, 0, -1, previous_producer_id=1000),
        "000100000000000003e800000000ea6000000000018bcfe56800ffffffffffffffff01000800000000000003e8",
    ),
    "v1 Ongoing": (
        record(0, S.ONGOING, FOO, 500, 500, previous_producer_id=1000, client_transaction_version=2),
        (
            "000100000000000003e800000000ea60010204666f6f030000000000000001000000018bcfe569f40000018bcfe569f402000800000000"
            "000003e802020002"
        ),
    ),
    "v1 PrepareCommit at overflow": (
        record(
            32767,
            S.PREPARE_COMMIT,
            frozenset({("foo", 0)}),
            900,
            500,
            previous_producer_id=1000,
            next_producer_id=2000,
            client_transaction_version=2,
        ),
        (
            "000100000000000003e87fff0000ea60020204666f6f0200000000000000018bcfe56b840000018bcfe569f4030008000000"
            "00000003e8010800000000000007d002020002"
        ),
    ),
    "v1 CompleteCommit": (
        record(1, S.COMPLETE_COMMIT, frozenset(), 900, 500, previous_producer_id=1000, client_transaction_version=2),
        "000100000000000003e800010000ea6004010000018bcfe56b840000018bcfe569f402000800000000000003e802020002",
    ),
    "v1 CompleteCommit after overflow": (
        record(
            0,
            S.COMPLETE_COMMIT,
            frozenset(),
            1000,
            500,
            pid=2000,
            previous_producer_id=1000,
            client_transaction_version=2,
        ),
        "000100000000000007d000000000ea6004010000018bcfe56be80000018bcfe569f402000800000000000003e802020002",
    ),
}


@pytest.mark.parametrize("name", VECTORS)
def test_DSK_01_records_are_those_of_kafka_byte_for_byte(name: str) -> None:
    """Every vector encodes to Kafka's bytes and decodes back to the record."""
    given_record, value = VECTORS[name]
    key, encoded = encode(given_record)
    assert (key.hex(), (encoded or b"").hex()) == (KEY, value)
    assert decode(key, encoded) == given_record


def test_a_tombstone_has_the_key_and_no_value() -> None:
    """An expired id is a null value under its key."""
    gone = TransactionTombstone("my-txn")
    assert encode(gone) == (bytes.fromhex(KEY), None)
    assert decode(*encode(gone)) == gone


def test_DSK_05_other_kinds_and_versions_are_read_over() -> None:
    """An unknown key type, an unknown value version and a record without key are no records of this machine."""
    key, value = encode(VECTORS["v1 Empty"][0])
    assert value is not None
    assert decode(b"\0\7" + key[2:], value) is None
    assert decode(key, b"\0\x09" + value[2:]) is None
    assert decode(None, value) is None


def test_DSK_06_tags_of_a_later_kafka_are_ignored() -> None:
    """An unknown tag is skipped, at the end of the value and inside a topic."""
    plain, value = VECTORS["v1 Empty"]
    later = bytes.fromhex(value[:-22] + "02" + value[-20:]) + b"\x09\x05later"
    assert decode(bytes.fromhex(KEY), later) == plain
    ongoing, value = VECTORS["v1 Ongoing"]
    inside = bytes.fromhex(value.replace("00000001000000018b", "000000010107027878" + "0000018b"))
    assert decode(bytes.fromhex(KEY), inside) == ongoing


def test_the_last_epoch_is_memory_only() -> None:
    """A record read back knows no last epoch, so KIP-360's retry does not survive a failover."""
    remembered = dataclasses.replace(VECTORS["v1 Empty"][0], last_epoch=7)
    decoded = decode(*encode(remembered))
    assert isinstance(decoded, TransactionRecord)
    assert decoded.last_epoch == -1


def test_states_are_named_as_on_the_wire() -> None:
    """DescribeTransactions and ListTransactions use Kafka's eight names."""
    assert [state.text for state in S] == [
        "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead",
        "PrepareEpochFence",
    ]  # fmt: skip


@given(
    st.builds(
        TransactionRecord,
        st.text(max_size=200),
        st.integers(0, 2**63 - 1),
        st.integers(-1, 32767),
        st.integers(0, 2**31 - 1),
        st.sampled_from(list(S)[:6]),
        st.none() | st.frozensets(st.tuples(st.text(max_size=200), st.integers(0, 2**31 - 1)), max_size=200),
        st.integers(-1, 2**62),
        st.integers(-1, 2**62),
        st.integers(-1, 2**62),
        st.integers(-1, 2**62),
        st.sampled_from([0, 2]),
    )
)
def test_every_record_survives_its_bytes(given_record: TransactionRecord) -> None:
    """Every record that is written is read back, also with sizes that need longer numbers."""
    assert decode(*encode(given_record)) == given_record


def test_a_value_that_ends_within_its_last_tag_is_not_read() -> None:
    """The number in the tag would be another one; the whole value is read."""
    written = record(0, S.EMPTY, None, 0, -1, previous_producer_id=300)
    key, value = encode(written)
    assert value is not None
    assert decode(key, value) == written
    with pytest.raises(struct.error):
        decode(key, value[:-1])
