"""Leader changes and snapshots of a KRaft quorum, as Apache Kafka 4.3.1 writes them."""

from protocol.log_records import metadata as m
from protocol.log_records.quorum import leader_change_batch, snapshot, snapshot_values
from protocol.records.batch import batches
from protocol.records.records import read_records

BOOTSTRAP = bytes.fromhex(
    "000000000000000000000047000000000241e8b5c3002000000000000001a1fe70779b000001a1fe70779bffffffffffffffffff"
    "ffffffffff000000012a000000080000000316000000000000000000000000"
)
"""The header batch of a bootstrap.checkpoint that kafka-storage wrote."""
LEADER_CHANGE = "00000000000102000000010002000000010000"
LEVELS = {
    "metadata.version": 30,
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "share.version": 1,
    "streams.version": 1,
    "transaction.version": 2,
}


def test_a_leader_change_names_leader_and_voter() -> None:
    """One control record in the leader's epoch, without producer."""
    (batch,) = batches(leader_change_batch(1, 5, 1_000, base_offset=7))
    (record,) = read_records(batch)
    assert (batch.is_control, batch.partition_leader_epoch, batch.base_offset, batch.crc_ok()) == (True, 5, 7, True)
    assert record.key == bytes.fromhex("00000002")
    assert record.value == bytes.fromhex(LEADER_CHANGE)


def test_a_snapshot_is_header_values_footer() -> None:
    """Offsets count from 0 over all three, all in epoch 0."""
    values = [m.encode(m.FeatureLevelRecord(name, level))[1] or b"" for name, level in LEVELS.items()]
    encoded = snapshot(values, 1_795_270_145_947)
    header, data, footer = batches(encoded)
    assert [b.base_offset for b in (header, data, footer)] == [0, 1, 7]
    assert [b.is_control for b in (header, data, footer)] == [True, False, True]
    assert [b.partition_leader_epoch for b in (header, data, footer)] == [0, 0, 0]
    assert (header.size, data.size, footer.size) == (83, 253, 75)
    (record,) = read_records(header)
    assert (record.key, record.value) == (bytes.fromhex("00000003"), bytes.fromhex("0000000000000000000000"))
    (record,) = read_records(footer)
    assert (record.key, record.value) == (bytes.fromhex("00000004"), bytes.fromhex("000000"))
    assert list(snapshot_values(encoded)) == values


def test_the_header_of_a_bootstrap_snapshot_is_kafkas_to_the_byte() -> None:
    """The same time gives the same batch."""
    encoded = snapshot([], 1_795_270_145_947)
    assert encoded[: len(BOOTSTRAP)].hex() == BOOTSTRAP.hex()


def test_a_long_snapshot_is_cut_into_batches() -> None:
    """No value is lost, and offsets go on."""
    values = [m.encode(m.ConfigRecord(2, "t", str(n), "v"))[1] or b"" for n in range(2500)]
    encoded = snapshot(values, 1)
    assert [b.record_count for b in batches(encoded)] == [1, 1000, 1000, 500, 1]
    assert list(snapshot_values(encoded)) == values
