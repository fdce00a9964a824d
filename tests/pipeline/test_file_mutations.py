"""Directories made wrong field by field, from one that real clients have filled, which is clean: most are found."""

from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

import pytest

from pipeline.audits.findings import ask_all
from pipeline.audits.registry import chosen
from pipeline.duck.tables import DuckTables
from tests.pipeline import directory_traffic
from tests.pipeline.directory_mutations import faults, plant
from tests.pipeline.file_mutations import Fault
from tests.serving import start

SAMPLE = 24
"""So many are tried: those whose names have the lowest checksums, so that one more fault does not draw others."""


def reported(root: Path) -> set[tuple[str, int]]:
    """Checks with the number of their findings, information left out."""
    tables = DuckTables(str(root))
    tables.register(records=True)
    asked = [check for check in chosen(has=["records"]) if check.severity != "info"]
    found = {(each.check.name, each.count) for each in ask_all(tables.engine, asked)}
    tables.forget()
    return found


def missed(root: Path, made: Sequence[Fault]) -> list[str]:
    """The faults that no check reports; each is planted in the directory alone."""
    names = []
    for fault in made:
        before = plant(root, fault)
        if not reported(root):
            names.append(f"{fault.kind}: {fault.name}")
        for path in [path for path, content in before.items() if content is None and (root / path).exists()]:
            (root / path).unlink()
        plant(root, Fault("", "", {path: content for path, content in before.items() if content is not None}))
    return names


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_most_wrong_fields_of_a_directory_are_found(tmp_path: Path) -> None:
    """The directory as it is has no finding, before and after; of a sample of its faults two thirds have one."""
    data = tmp_path / "data"
    server = start(data_dir=data, settings=directory_traffic.SETTINGS)
    try:
        members = directory_traffic.make(server.ready.bootstrap_servers[0])
    finally:
        server.stop()
    assert members
    assert reported(data) == set()
    made = faults(data)
    assert len(made) > 1000
    names = missed(data, sorted(made, key=lambda fault: crc32(f"{fault.kind} {fault.name}".encode()))[:SAMPLE])
    assert len(names) <= SAMPLE / 3, names
    assert reported(data) == set()
