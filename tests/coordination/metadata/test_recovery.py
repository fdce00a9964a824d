"""A machine over the old log knows what the old one knew, from any prefix; metadata transactions count as a whole."""

from uuid import UUID

import pytest

from broker.coordination.metadata.configs import NewConfigs
from broker.coordination.metadata.machine import MetadataMachine
from broker.coordination.metadata.snapshot import records_of
from protocol.log_records.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    NoOpRecord,
    UnfenceBrokerRecord,
    decode,
    encode,
)
from protocol.log_records.metadata_security import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    QuotaEntity,
    UserScramCredentialRecord,
)
from tests.coordination.metadata.harness import Bench


def eventful() -> Bench:
    """A cluster that has seen all kinds of changes."""
    bench = Bench(3)
    bench.create("t", [1, 2], [2, 3], configs={"min.insync.replicas": "2"})
    gone = bench.create("a.b", [3])
    bench.do(bench.machine.alter_configs([NewConfigs(4, "", {"log.cleaner.threads": "2"})]))
    bench.do(bench.machine.alter_partition_reassignments([("t", 0, [3, 1])]))
    bench.do(bench.machine.change_isr("t", 0, [1, 2, 3]))
    bench.do(bench.machine.broker_stopped(2))
    bench.do(bench.machine.allocate_producer_ids())
    bench.do(bench.machine.delete_topics([gone.id]))
    bench.arrive(2, clean=False)
    return bench


def test_a_reloaded_machine_knows_the_same() -> None:
    """Every record is encoded and decoded on the way."""
    bench = eventful()
    assert bench.reloaded().image == bench.image


def test_a_snapshot_knows_the_same() -> None:
    """Through the bytes of its records, of every kind; so does one of a cluster with a single broker."""
    bench = eventful()
    entry = QuotaEntity("user", None)
    for record in (
        AccessControlEntryRecord(UUID(int=1), 2, "t", 3, "User:a", "*", 3, 3),
        ClientQuotaRecord((entry, QuotaEntity("client-id", "c")), "producer_byte_rate", 1000.0),
        UserScramCredentialRecord("a", 1, b"salt", b"stored", b"server", 4096),
        DelegationTokenRecord("User:a", "User:b", ("User:c",), 1, 2, 3, "id"),
    ):
        bench.machine.replay(record, bench.image.offset + 1)
    for image in (bench.image, Bench(1, racks=["r"]).image):
        machine: MetadataMachine = Bench(0).new_machine()
        for value in [encode(each)[1] for each in records_of(image)]:
            machine.replay(decode(None, value), image.offset)
        assert machine.image == image


def test_every_prefix_of_the_log_can_be_loaded() -> None:
    """A crash may end it anywhere; what follows then gives the same again."""
    bench = eventful()
    for end in range(len(bench.log) + 1):
        machine = bench.reloaded(end)
        machine.loaded(0)
        assert machine.image.offset == end - 1
    assert machine.image == bench.image


def test_an_empty_log_begins_with_the_features() -> None:
    """One batch, framed as a metadata transaction; a log that has them is left as it is."""
    bench = Bench(0)
    assert len(bench.log) == 9
    assert bench.image.config(4, "") == {"min.insync.replicas": "1"}
    assert bench.machine.loaded(0).records == ()
    plain = Bench(0, levels={"eligible.leader.replicas.version": 0})
    assert len(plain.log) == 7


@pytest.mark.parametrize(
    ("end", "level"), [(EndTransactionRecord(), 1), (AbortTransactionRecord(), None), (NoOpRecord(), None)]
)
def test_records_of_a_metadata_transaction_wait_for_its_end(end: object, level: int | None) -> None:
    """KIP-868: aborted or still open, they never were."""
    machine: MetadataMachine = Bench(0).new_machine()
    for offset, record in enumerate([BeginTransactionRecord("x"), FeatureLevelRecord("share.version", 1), end]):
        machine.replay(record, offset)
    machine.loaded(0)
    assert machine.image.features.get("share.version") == level
    assert machine.image.offset == 2


def test_records_of_real_controllers_without_meaning_here_are_skipped() -> None:
    """NoOp; fencing records of releases before 3.3 are understood."""
    bench = Bench()
    for record in (NoOpRecord(), FenceBrokerRecord(1)):
        bench.machine.replay(record, bench.image.offset + 1)
    assert not bench.image.alive(1)
    bench.machine.replay(UnfenceBrokerRecord(1), bench.image.offset + 1)
    bench.machine.replay_marker(1, 0, committed=True)
    assert bench.image.alive(1)
    assert bench.machine.unloaded().effects == ()
