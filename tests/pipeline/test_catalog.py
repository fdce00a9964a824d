"""Exports as tables of Delta Lake and Iceberg: their own libraries read back what was exported. No Spark."""

import importlib.util
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from pipeline.transfer import catalog, export, parquet
from pipeline.transfer.catalog import RegisterError
from pipeline.transfer.manifest import NAME, Bounds, Manifest, Store
from pipeline.transfer.staging import Staging
from tests.pipeline.conftest import Refused

TOPICS = ("orders", "a b/c", "ümlaut")
KEPT = ("topic", "partition", "offset", "key", "value", "timestamp_ms", "timestamp", "timestampType", "headers")


def exported(folder: Path, *, producers: bool = False) -> tuple[Store, Manifest]:
    """An export of some topics, with all that is odd: nulls, empty values, headers twice, topics with odd names."""
    columns = parquet.schema(producers=producers)
    whole = []
    for topic in TOPICS:
        for offset in range(5):
            row: dict[str, Any] = dict.fromkeys(columns.names)
            row |= {
                "topic": topic, "partition": offset % 2, "offset": offset, "key": (None, b"", b"\xff")[offset % 3],
                "value": b"v%d" % offset, "timestamp_ms": offset, "timestampType": 0,
                "timestamp": datetime(2026, 11, 22, 10, tzinfo=UTC),
                "headers": [{"key": "h", "value": b"1"}, {"key": "h", "value": None}] if offset == 1 else None,
            }  # fmt: skip
            if producers:
                row |= {"producer_id": 7, "producer_epoch": 1, "sequence": offset, "is_transactional": True}
            whole.append(row)
    whole.sort(key=lambda row: (TOPICS.index(row["topic"]), row["partition"], row["offset"]))
    batch = pa.RecordBatch.from_pylist(whole, columns)
    files = tuple(parquet.write_files([batch], str(folder), columns, 0))
    manifest = Manifest("", producers, "", {topic: {0: Bounds(0, 5), 1: Bounds(0, 5)} for topic in TOPICS}, files=files)
    store = Store(str(folder))
    store.write(NAME, manifest.encode().encode())
    return store, manifest


def rows(table: pa.Table) -> list[dict[str, Any]]:
    """In the order of topic, partition and offset, without what not every row has."""
    kept = [{name: row[name] for name in KEPT} for row in table.to_pylist()]
    return sorted(kept, key=lambda row: (row["topic"], row["partition"], row["offset"]))


def delta(folder: Path) -> pa.Table:
    """The table as Delta's library reads it."""
    from deltalake import DeltaTable  # noqa: PLC0415 - as the code under test

    return pa.table(DeltaTable(str(folder)).to_pyarrow_table())


def iceberg(place: str) -> pa.Table:
    """The table as Iceberg's library reads it from its metadata file."""
    from pyiceberg.table import StaticTable  # noqa: PLC0415 - as above

    return StaticTable.from_metadata(place).scan().to_arrow()


@pytest.mark.parametrize("producers", [False, True], ids=["as consumers see it", "with producers"])
def test_both_libraries_read_what_was_exported(tmp_path: Path, producers: bool) -> None:
    """Record by record, of the same files: nothing was copied. The folder is still an export."""
    store, manifest = exported(tmp_path / "out", producers=producers)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")}
    answer = catalog.register(store, manifest, ["delta", "iceberg"])
    paths = [f"{store.path}/{each.path}" for each in manifest.files]
    expected = rows(ds.dataset(paths, format="parquet").to_table())
    assert len(expected) == 15
    assert rows(delta(tmp_path / "out")) == expected
    # pyiceberg's reader makes an empty list of a list that is null.
    without = [row | {"headers": row["headers"] or []} for row in expected]
    assert rows(iceberg(answer["iceberg"])) == without
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")} == before
    export.verify(store, store.read_manifest())


def test_overwriting_takes_the_tables_away(tmp_path: Path) -> None:
    """Overwriting an export removes its tables, which name files that are gone."""
    store, manifest = exported(tmp_path / "out")
    catalog.register(store, manifest, ["delta", "iceberg"])
    staging = Staging(store)
    staging.begin()
    staging.commit(Manifest("", False, "", {}), export.prepare(store, overwrite=True))
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["_manifest.json"]


def test_an_export_of_nothing_is_refused(tmp_path: Path) -> None:
    """An export without a file cannot be registered, and is refused."""
    with pytest.raises(RegisterError, match="no file that could be registered"):
        catalog.register(Store(str(tmp_path)), Manifest("", False, "", {}), ["delta"])


def test_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused) -> None:
    """Before anything is exported, with how to get it."""
    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "pyiceberg" else find(name))
    registers = ["--register", "delta", "--register", "iceberg"]
    message = refused("export", str(tmp_path), str(tmp_path / "out"), *registers, code=1)
    assert "pip install 'understudy-kafka[iceberg]'" in message
    assert not (tmp_path / "out").exists()
