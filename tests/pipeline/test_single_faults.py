"""Faults of files of which a directory has one: each is found under its name, and a directory without it is clean."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Final
from uuid import UUID

import pytest

from pipeline.audits.metadata_files import faults
from pipeline.audits.sidecar_files import Tree
from protocol.log_records import metadata
from protocol.log_records import metadata_security as security
from protocol.records.batch import batches
from storage.checkpoints import CLEAN_SHUTDOWN
from tests.pipeline.audited import checks_that_find
from tests.pipeline.fault_files import Planting, topic_id_of
from tests.pipeline.single_fault_cases import BROKER, FAULTS, LOG, METADATA, behind, directory, quorum_of

OF_THE_METADATA: Final = {"metadata-snapshot", "quorum-state", "metadata-record"}
FIRST: Final = {check: name for name, (check, _) in sorted(FAULTS.items(), reverse=True)}
BY_QUERY: Final = {
    name for name, (check, _) in FAULTS.items() if check not in OF_THE_METADATA or name == FIRST[check]
} | {"epoch-without-its-leader"}  # fmt: skip
"""Faults that the check itself is asked for; of the others, only the rows are made that it returns."""

LATER: Final = ("type-of-a-metadata-record", "version-of-a-metadata-record", "setting-misspelled")


def test_the_directory_without_a_fault_is_clean(tmp_path: Path) -> None:
    """Of all checks of logs, not only of those with a fault here."""
    assert checks_that_find(directory(tmp_path / "data")) == set()


def test_a_broker_passes_over_other_names(tmp_path: Path) -> None:
    """Of folders that are no partition's or no longer one, and of files whose names do not end as a segment's do."""
    root = directory(tmp_path / "data")
    for name in ("remote-log-index-cache", "lost+found", f"orders-7.{7:032x}-delete", f"orders-7.{7:032x}-stray"):
        (root / name).mkdir()
    for name in ("orders-0/copy.log.old", "orders-0/copy.deleted", "orders-0/note", "note.log"):
        (root / name).write_bytes(b"")
    assert checks_that_find(root) == set()


def test_an_index_of_the_metadata_log_need_not_be_trimmed(tmp_path: Path) -> None:
    """Kafka 4.4 leaves it as it was, also when it stops cleanly; with an index of another log it is a fault."""
    root = directory(tmp_path / "data")
    (root / METADATA / f"{0:020d}.index").write_bytes(bytes(64))
    assert "segment-files" not in checks_that_find(root, "segment-files")


def test_a_former_replica_may_stay_eligible(tmp_path: Path) -> None:
    """A reassignment that ends below min.insync.replicas leaves it there; one that never was a replica is a fault."""
    root, orders = directory(tmp_path / "data"), topic_id_of("orders")
    behind(metadata.PartitionChangeRecord(0, orders, replicas=(1, 2)))(root)
    behind(metadata.PartitionChangeRecord(0, orders, replicas=(1,), eligible_leader_replicas=(2,)))(root)
    assert checks_that_find(root, "metadata-record") == set()
    behind(metadata.PartitionChangeRecord(0, orders, eligible_leader_replicas=(7,)))(root)
    assert checks_that_find(root, "metadata-record") == {"metadata-record"}


def test_a_level_that_loses_no_metadata_may_go_back(tmp_path: Path) -> None:
    """A controller takes 31 back to 30, which has the same records, and never 30 to 29."""
    root = directory(tmp_path / "data")
    behind(*(metadata.FeatureLevelRecord("metadata.version", level) for level in (31, 30)))(root)
    assert checks_that_find(root, "metadata-record") == set()
    behind(metadata.FeatureLevelRecord("metadata.version", 29))(root)
    assert checks_that_find(root, "metadata-record") == {"metadata-record"}


def test_a_later_release_may_have_records_and_settings_of_its_own(tmp_path: Path) -> None:
    """Beyond the newest metadata.version that is known here, a record's type and version and a name are no faults."""
    root, level = directory(tmp_path / "data"), metadata.LATEST_METADATA_VERSION + 1
    features = (replace(BROKER.features[0], max_supported_version=level), *BROKER.features[1:])
    newer = replace(BROKER, broker_epoch=BROKER.broker_epoch + 9, features=features)
    behind(newer, metadata.FeatureLevelRecord("metadata.version", level))(root)
    for name in LATER:
        FAULTS[name][1](root)
    assert checks_that_find(root, "metadata-record", "setting-unknown") == set()
    older = directory(tmp_path / "older")
    for name in LATER:
        FAULTS[name][1](older)
    assert checks_that_find(older, "metadata-record", "setting-unknown") == {"metadata-record", "setting-unknown"}


def test_a_quorum_writes_control_records_into_its_log(tmp_path: Path) -> None:
    """Its leader is one of the voters."""
    root = directory(tmp_path / "data")
    quorum_of(1, 2, 3)(root)
    assert checks_that_find(root) == set()


def test_a_log_directory_may_go_to_another_broker(tmp_path: Path) -> None:
    """Once its broker has registered without it; the fault is the same registration before that."""
    root = directory(tmp_path / "data")
    more = replace(BROKER, log_dirs=(*BROKER.log_dirs, UUID(int=190)))
    behind(more, metadata.BrokerRegistrationChangeRecord(1, 1, log_dirs=(UUID(int=190),)))(root)
    FAULTS["log-directory-of-another-broker"][1](root)
    assert checks_that_find(root, "metadata-record") == set()


def test_a_broker_registers_at_the_offset_of_its_record_or_before(tmp_path: Path) -> None:
    """The same incarnation keeps its epoch, even while it shuts down; another offset in the batch is the epoch, too."""
    root = directory(tmp_path / "data")
    end = [*batches((root / LOG).read_bytes())][-1].next_offset
    behind(replace(BROKER, in_controlled_shutdown=True), replace(BROKER, broker_epoch=end + 1))(root)
    assert checks_that_find(root, "metadata-record") == set()
    behind(replace(BROKER, broker_epoch=end + 3))(root)
    assert checks_that_find(root, "metadata-record") == {"metadata-record"}


def test_a_leader_may_be_a_broker_that_registered_before(tmp_path: Path) -> None:
    """The fault is the same change without the registration."""
    root = directory(tmp_path / "data")
    behind(replace(BROKER, broker_id=7, log_dirs=(UUID(int=177),), incarnation_id=UUID(int=78)))(root)
    FAULTS["leader-never-registered"][1](root)
    assert checks_that_find(root, "metadata-record") == set()


def test_a_setting_of_a_broker_has_any_name(tmp_path: Path) -> None:
    """Its plugins have settings of their own, and listeners have prefixes."""
    root = directory(tmp_path / "data")
    behind(*(metadata.ConfigRecord(4, "1", name, "5") for name in ("listener.name.a.ssl.x", "of.a.plugin")))(root)
    assert checks_that_find(root, "setting-unknown") == set()


def test_a_high_watermark_may_be_zero(tmp_path: Path) -> None:
    """Of an empty log, or of a broker that was killed before it wrote the checkpoint again."""
    root = directory(tmp_path / "data")
    FAULTS["watermark-of-zero"][1](root)
    assert checks_that_find(root, "checkpoint-offset") == {"checkpoint-offset"}
    (root / CLEAN_SHUTDOWN).unlink()
    assert checks_that_find(root, "checkpoint-offset") == set()


def test_a_segment_that_waits_for_its_deletion_has_its_indexes(tmp_path: Path) -> None:
    """As retention leaves them for file.delete.delay.ms; under its own name an index without its segment is a fault."""
    root = directory(tmp_path / "data")
    for path in sorted((root / "orders-0").glob(f"{0:020d}.*")):
        shutil.copy(path, path.with_name(path.name.replace(f"{0:020d}", f"{3:020d}") + ".deleted"))
    assert checks_that_find(root, "segment-files") == set()
    index = root / f"orders-0/{3:020d}.index.deleted"
    index.rename(index.with_suffix(""))
    assert checks_that_find(root, "segment-files") == {"segment-files"}


def test_zeros_at_the_end_may_be_preallocated_where_the_settings_are_elsewhere(tmp_path: Path) -> None:
    """So 2.8.2 leaves a segment when it is killed; ZooKeeper knows which topics have `preallocate`."""
    root = directory(tmp_path / "data")
    (root / CLEAN_SHUTDOWN).unlink()
    path = root / f"orders-0/{6:020d}.log"
    path.write_bytes(path.read_bytes() + bytes(500))
    assert checks_that_find(root, "tail-torn") == {"tail-torn"}
    preallocated = tmp_path / "preallocated"
    shutil.copytree(root, preallocated)
    behind(metadata.ConfigRecord(2, "orders", "preallocate", "TRUE"))(preallocated)
    assert checks_that_find(preallocated, "tail-torn") == set()
    shutil.rmtree(root / METADATA)
    assert checks_that_find(root, "tail-torn") == set()


def test_a_broker_completes_a_swap(tmp_path: Path) -> None:
    """2.8.2 and 4.4.0 may stop cleanly while the cleaner replaces a segment; beside that it is a file too many."""
    root = directory(tmp_path / "data")
    (root / f"orders-0/{0:020d}.log.cleaned").write_bytes(b"half of it")
    for path in sorted((root / "orders-0").glob(f"{0:020d}.*")):
        path.rename(f"{path}.swap")
    assert checks_that_find(root, "segment-files") == set()
    log = root / f"orders-0/{0:020d}.log"
    shutil.copy(f"{log}.swap", log)
    assert checks_that_find(root, "segment-files") == {"segment-files"}


def test_a_replica_that_moves_here_has_entries_in_the_checkpoints(tmp_path: Path) -> None:
    """So 2.8.2 writes them when it stops during a move; without the folder they are of no partition."""
    root = directory(tmp_path / "data")
    future = (root / "orders-1").rename(root / f"orders-1.{7:032x}-future")
    assert checks_that_find(root, "checkpoint-partition") == set()
    shutil.rmtree(future)
    assert checks_that_find(root, "checkpoint-partition") == {"checkpoint-partition"}


@pytest.mark.parametrize("clean", [True, False])
def test_a_copy_without_indexes_is_a_warning(tmp_path: Path, clean: bool) -> None:
    """Of one segment or of all: a broker rebuilds them when it starts, the one of aborted transactions, too."""
    root = directory(tmp_path / "data")
    if not clean:
        (root / CLEAN_SHUTDOWN).unlink()
    for segment in sorted(root.glob("orders-0/*.log")):
        for suffix in (".index", ".timeindex", ".txnindex"):
            segment.with_suffix(suffix).unlink(missing_ok=True)
        assert checks_that_find(root) == {"segment-files"}


def test_a_copy_without_its_leader_epoch_checkpoint_is_a_warning(tmp_path: Path) -> None:
    """A broker takes the log as it is; a checkpoint without an epoch of the log is an error."""
    root = directory(tmp_path / "data")
    (root / "orders-0/leader-epoch-checkpoint").write_text("0\n0\n")
    assert checks_that_find(root) == {"leader-epoch-entries"}
    (root / "orders-0/leader-epoch-checkpoint").unlink()
    assert checks_that_find(root) == {"segment-files"}


@pytest.mark.parametrize(
    ("suffixes", "checks"),
    [([".txnindex"], {"index-transaction"}), ([".index", ".timeindex", ".txnindex"], {"segment-files"})],
)
def test_an_index_of_aborted_transactions_is_not_rebuilt_alone(
    tmp_path: Path, suffixes: list[str], checks: set[str]
) -> None:
    """Where the offset index is there, a broker takes the segment as it is."""
    where = Planting(tmp_path / "data")
    log = where.shelf("orders")
    log.data(3, producer=630, transactional=True)
    log.marker(630, 0, committed=False)
    root = where.close()
    for suffix in suffixes:
        (root / log.segment.path_of(suffix)).unlink()
    assert checks_that_find(root, "index-transaction", "index-time", "segment-files") == checks


@pytest.mark.parametrize("name", sorted(BY_QUERY))
def test_a_fault_is_found(tmp_path: Path, name: str) -> None:
    """Each planted fault is reported under the name of its check."""
    check, plant = FAULTS[name]
    root = directory(tmp_path / "data")
    plant(root)
    assert check in checks_that_find(root, check)


@pytest.mark.parametrize("name", sorted(FAULTS.keys() - BY_QUERY))
def test_a_fault_of_the_metadata_has_its_row(tmp_path: Path, name: str) -> None:
    """In the table that the checks of the metadata ask; a directory in order has none."""
    root = directory(tmp_path / "data")
    assert faults(Tree(str(root))) == []
    FAULTS[name][1](root)
    assert {"metadata-record" if each.get("file") is None else each["type"] for each in faults(Tree(str(root)))} & {
        "metadata-record", "snapshot", "quorum-state",
    }  # fmt: skip


def test_quotas_of_every_kind_are_none(tmp_path: Path) -> None:
    """The sound neighbours: each kind of clients, the one of addresses, and the removal of one."""
    root = directory(tmp_path / "data")
    clients = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
    kinds = [("user", key) for key in clients] + [("client-id", clients[0]), ("ip", "connection_creation_rate")]
    quotas = [security.ClientQuotaRecord((security.QuotaEntity(kind, "a"),), key, 4.0) for kind, key in kinds]
    removed = security.ClientQuotaRecord(quotas[0].entity, quotas[0].key, 0.0, remove=True)
    behind(*quotas, removed)(root)
    assert faults(Tree(str(root))) == []
