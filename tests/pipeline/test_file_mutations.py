"""Directories made wrong in one place, from those that real clients have filled, which are clean: most are found."""

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

import pytest

from tests.pipeline import cluster_traffic, directory_traffic
from tests.pipeline.audited import findings_of
from tests.pipeline.directories_alone import Alone
from tests.pipeline.directory_mutations import faults
from tests.pipeline.directory_reasons import SHOULD_BE_FOUND, reason_of
from tests.pipeline.file_mutations import Fault
from tests.serving import start

SAMPLE = 12
"""So many are tried each time: those whose names have the lowest checksums, so that one more does not draw others."""


def reported(root: Path) -> set[tuple[str, int]]:
    """Checks with the number of their findings, information left out."""
    return {(each.check.name, each.count) for each in findings_of(root, information=False)}


def replicated(data: Path) -> None:
    """The directories of three brokers."""
    server = start(data_dir=data, brokers=3, settings=cluster_traffic.SETTINGS)
    try:
        cluster_traffic.make(",".join(server.ready.bootstrap_servers))
    finally:
        server.stop()


def filled(data: Path) -> None:
    """The directory of one broker, with every kind of file and record."""
    server = start(data_dir=data, settings=directory_traffic.SETTINGS)
    try:
        members = directory_traffic.make(server.ready.bootstrap_servers[0])
    finally:
        server.stop()
    assert members


def missed(root: Path, faults: Sequence[Fault]) -> list[Fault]:
    """The faults that no check reports; each is planted in the directory alone, which has no finding without them."""
    alone = Alone(root)
    assert alone.of_none == set()
    faults = [fault for fault in faults if alone.finder_of(fault) is None]
    alone.close()
    assert reported(root) == set()
    return faults


@pytest.mark.timeout(240)
def test_a_sample_of_wrong_files_of_three_brokers_is_found(tmp_path: Path) -> None:
    """Of files that were exchanged, removed and changed between replicas."""
    replicated(tmp_path / "data")
    mutations = sorted(faults(tmp_path / "data"), key=lambda fault: crc32(f"{fault.kind} {fault.name}".encode()))
    assert len(mutations) > 200
    assert [
        fault.name for fault in missed(tmp_path / "data", mutations[:SAMPLE]) if reason_of(fault) == SHOULD_BE_FOUND
    ] == []


@pytest.mark.timeout(240)
def test_an_audit_that_reads_only_what_has_changed_finds_the_same(tmp_path: Path) -> None:
    """As one from the beginning, in a directory with the fault and in the one without it."""
    replicated(tmp_path / "data")
    alone = Alone(tmp_path / "data")
    empty = Fault("", "", {})
    mutations = {fault.name: fault for fault in faults(tmp_path / "data")}
    name = next(each for each in mutations if each.endswith("a replica: base_offset one more"))
    assert [alone.finder_of(each) for each in (empty, mutations[name], empty)] == [
        None,
        alone.finder_of(mutations[name]),
        None,
    ]
    (path,) = [path for path in mutations[name].files if path.endswith(".log")]
    content = mutations[name].files[path]
    assert content is not None
    (tmp_path / "data" / path).write_bytes(content)
    assert alone.finder_of(mutations[name]) in {check for check, _ in reported(tmp_path / "data")}
    alone.close()


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("fill", [replicated, filled])
def test_the_whole_set_of_wrong_directories(tmp_path: Path, fill: object) -> None:
    """Nine of ten without an excuse are found; prints the rows of docs/inside/verification.md."""
    assert callable(fill)
    fill(tmp_path / "data")
    mutations = faults(tmp_path / "data")
    left = missed(tmp_path / "data", mutations)
    reasons = Counter(reason_of(fault) for fault in left)
    sys.stdout.write(f"{len(mutations)} faults, {len(mutations) - len(left)} found; missed: {dict(reasons)}\n")
    for fault in left:
        sys.stdout.write(f"{reason_of(fault)}: {fault.kind}: {fault.name}\n")
    assert reasons[SHOULD_BE_FOUND] <= (len(mutations) - len(left)) / 10
