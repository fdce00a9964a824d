"""Registers an export as a table of Delta Lake or Iceberg: adds metadata for the same Parquet files, copies nothing.

Delta's metadata is in `_delta_log`, so the export's folder is the table. Iceberg's is in `_iceberg/metadata`; it has
the full paths of the files, so the folder must not be moved.
"""

import importlib.util
import json
import logging
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from pipeline.transfer import parquet
from pipeline.transfer.manifest import ExportedFile, Manifest, Store

DELTA: Final = "delta"
ICEBERG: Final = "iceberg"
FOLDERS: Final = {DELTA: "_delta_log", ICEBERG: "_iceberg"}
LIBRARIES: Final = {DELTA: ("deltalake",), ICEBERG: ("pyiceberg", "sqlalchemy")}
_BY: Final = "topic"


class RegisterError(RuntimeError):
    """The files cannot be registered; the message is for the user."""


def check(kinds: Iterable[str]) -> None:
    """Check that the libraries are installed. Raises RegisterError."""
    for kind in kinds:
        missing = [name for name in LIBRARIES[kind] if importlib.util.find_spec(name) is None]
        if missing:
            raise RegisterError(f"--register {kind} needs {missing[0]}; run: pip install 'understudy-kafka[{kind}]'")


def register(store: Store, manifest: Manifest, kinds: Sequence[str]) -> Mapping[str, str]:
    """Register an export that has just been written as tables of these kinds.

    Returns:
        Kind -> location for readers of the table: the folder (Delta), the metadata file (Iceberg).

    Raises:
        RegisterError: there is no file, or the library failed.
    """
    if kinds and not manifest.files:
        raise RegisterError(f"{store.path} holds no record: there is no file that could be registered")
    makers = {DELTA: _delta, ICEBERG: _iceberg}
    columns = parquet.schema(producers=manifest.producers, values=manifest.values)
    registered = {}
    for kind in kinds:
        try:
            registered[kind] = makers[kind](store, manifest, columns)
        except Exception as error:  # the libraries' exceptions have no common base class
            raise RegisterError(f"{store.path} cannot be registered with {kind}: {error}") from error
    return registered


def registered(store: Store) -> list[str]:
    """Return the kinds of tables as which an export is registered."""
    return [kind for kind, folder in FOLDERS.items() if store.exists(folder)]


def forget(store: Store) -> None:
    """Remove the registration, because the files that it lists will be removed."""
    for folder in FOLDERS.values():
        if store.exists(folder):
            store.files.delete_dir(store.full(folder))


def _delta(store: Store, manifest: Manifest, columns: pa.Schema) -> str:
    from deltalake import DeltaTable, Schema  # noqa: PLC0415 - an extra
    from deltalake.transaction import AddAction, RemoveAction  # noqa: PLC0415 - as above

    kinds = Schema.from_arrow(columns)
    table = DeltaTable.create(store.path, kinds)
    added: list[AddAction | RemoveAction] = []
    for each in manifest.files:
        info = store.files.get_file_info(store.full(each.path))
        at_ms = int((info.mtime.timestamp() if info.mtime else 0) * 1000)
        added.append(AddAction(each.path, each.bytes, {}, at_ms, True, json.dumps(_statistics(each))))
    # Not partitioned, because then the files could not contain the topic column. Statistics let readers skip files.
    table.create_write_transaction(added, mode="append", schema=kinds, partition_by=[])
    return store.path


def _statistics(file: ExportedFile) -> dict[str, Any]:
    """Statistics that let readers skip a file."""
    low: dict[str, Any] = {_BY: file.topic, "partition": min(part.partition for part in file.parts)}
    high: dict[str, Any] = {_BY: file.topic, "partition": max(part.partition for part in file.parts)}
    low["offset"] = min(part.first_offset for part in file.parts)
    high["offset"] = max(part.last_offset for part in file.parts)
    return {"numRecords": file.records, "minValues": low, "maxValues": high}


def _iceberg(store: Store, manifest: Manifest, columns: pa.Schema) -> str:
    from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415 - an extra

    # It warns of each column without statistics, which are few on purpose.
    logging.getLogger("pyiceberg.io.pyarrow").setLevel(logging.ERROR)
    place = store.path if "://" in store.path else f"file://{store.absolute}"
    with tempfile.TemporaryDirectory(prefix="understudy-register-") as folder:
        # The catalog is only for this call: readers register the metadata file in their own catalog.
        own = f"{place}/{FOLDERS[ICEBERG]}"
        catalog = SqlCatalog("understudy", uri=f"sqlite:///{folder}/catalog.db", warehouse=own)
        catalog.create_namespace("understudy")
        table = catalog.create_table("understudy.export", schema=columns, location=own)
        with table.transaction() as work:
            with work.update_spec() as spec:
                spec.add_identity(_BY)
            work.add_files([f"{place}/{each.path}" for each in manifest.files])
        metadata_location: str = table.metadata_location
        catalog.close()
    return metadata_location.removeprefix("file://")
