"""Reads the small files of a data directory as rows: checkpoints, producer snapshots, identities, unreadable files.

An unreadable file is a row of its own, so that no check takes a broken file for a missing one.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from pipeline.audits.metadata_files import METADATA_FAULTS, faults
from pipeline.audits.sidecar_files import ENTRIES, Tree
from protocol.log_records import metadata
from protocol.log_records.metadata import FeatureLevelRecord
from protocol.log_records.quorum import snapshot_values
from protocol.records.batch import checked_batches
from protocol.records.errors import RecordsError
from protocol.records.records import ControlType, control_key, read_records
from storage.checkpoints import (
    CLEAN_SHUTDOWN,
    LEADER_EPOCHS,
    LOG_START,
    META_PROPERTIES,
    PARTITION_METADATA,
    CheckpointError,
    decode_epochs,
    decode_offsets,
    decode_partition_metadata,
    decode_properties,
)
from storage.log_dir import partition_of
from storage.ownership import OFFSET_CHECKPOINTS, is_refused_file, is_refused_folder, segment_part
from storage.producers.snapshot import SnapshotCorruptError, decode_snapshot
from storage.quorum_files import BOOTSTRAP, QUORUM_STATE, QuorumStateError, check_quorum_state, metadata_snapshot

_METADATA: Final = "__cluster_metadata-0"
_FUTURE: Final = re.compile(r"(.+)-(\d+)\.[0-9a-f]{32}-future$")
_SWAP: Final = ".swap"
"""Suffixes of files that the cleaner writes before they replace others (LogCleaner, UnifiedLog)."""
_ZEROS: Final = 8
"""Bytes of an index entry that are not all zero: the first batch of a segment has no entry."""
_PLACE: Final = [pa.field("directory", pa.string()), pa.field("topic", pa.string()), pa.field("partition", pa.int32())]

CHECKPOINTS: Final = pa.schema([*_PLACE, pa.field("file", pa.string()), pa.field("offset", pa.int64())])
"""One row per entry of the four offset checkpoints."""
EPOCHS: Final = pa.schema(
    [
        *_PLACE,
        pa.field("entry", pa.int32()),  # number within the file
        pa.field("epoch", pa.int32()),
        pa.field("start_offset", pa.int64()),
    ]
)
"""One row per entry of a leader epoch checkpoint."""
UNREADABLE: Final = pa.schema([*_PLACE, pa.field("file", pa.string()), pa.field("reason", pa.string())])
"""One row per file that cannot be read, or name that a broker refuses; topic and partition are null for an entry of the
data directory itself."""
SNAPSHOTS: Final = pa.schema(
    [
        *_PLACE,
        pa.field("snapshot_offset", pa.int64()),  # from the file's name
        pa.field("entry", pa.int32()),  # number within the file; null for one without any
        pa.field("producer_id", pa.int64()),
        pa.field("producer_epoch", pa.int32()),
        pa.field("last_sequence", pa.int64()),  # null if no batch is kept
        pa.field("last_offset", pa.int64()),
        pa.field("offset_delta", pa.int64()),  # last offset of its last batch minus the first
        pa.field("timestamp_ms", pa.int64()),  # of its last batch or transaction marker
        pa.field("coordinator_epoch", pa.int32()),
        pa.field("transaction_offset", pa.int64()),  # first offset of its open transaction; null if none
    ]
)
"""One row per producer of a producer snapshot."""
SEGMENT_FILES: Final = pa.schema(
    [
        *_PLACE,
        pa.field("segment_base", pa.int64()),
        pa.field("file", pa.string()),
        pa.field(
            "what", pa.string()
        ),  # missing; after a clean shutdown also: left without its segment, not trimmed, left by a compaction
    ]
)
"""One row per index file that does not fit its segment, missing epoch checkpoint, or file that the cleaner has left."""
FUTURES: Final = pa.schema([*_PLACE, pa.field("folder", pa.string()), pa.field("bytes", pa.int64())])
"""One row per folder of a replica that moves to this log directory, with the size of its segments."""
BROKERS: Final = pa.schema(
    [
        pa.field("directory", pa.string()),
        *(pa.field(name, pa.string()) for name in ("version", "cluster_id", "node_id", "directory_id")),
        pa.field("is_clean", pa.bool_()),  # the broker stopped cleanly and is not running
        pa.field("has_log_starts", pa.bool_()),  # a checkpoint of log start offsets exists, even if it is empty
    ]
)
"""One row per `meta.properties`."""


TABLES: Final = {
    "checkpoints": CHECKPOINTS,
    "epochs": EPOCHS,
    "unreadable": UNREADABLE,
    "snapshots": SNAPSHOTS,
    "brokers": BROKERS,
    "segment_files": SEGMENT_FILES,
    "futures": FUTURES,
    "metadata_faults": METADATA_FAULTS,
}
"""The tables of `BrokerFiles` by name."""


def _snapshot_records(raw: bytes) -> list[Any]:
    """Return the records of a finished snapshot. Raises RecordsError if it is damaged, or without header or footer."""
    kinds = [
        (batch.is_control, next(read_records(batch)).key if batch.is_control else None)
        for batch in checked_batches(raw)
    ]
    if not kinds or kinds[0] != (True, control_key(ControlType.SNAPSHOT_HEADER)):
        raise RecordsError("the header of the snapshot is missing")
    if kinds[-1] != (True, control_key(ControlType.SNAPSHOT_FOOTER)):
        raise RecordsError("the footer of the snapshot is missing: it is truncated")
    return [metadata.decode(None, value) for value in snapshot_values(raw)]


def _check_bootstrap(raw: bytes) -> None:
    """Raise RecordsError unless these are metadata records with a `metadata.version` (BootstrapMetadata)."""
    records = _snapshot_records(raw)
    if not any(isinstance(each, FeatureLevelRecord) and each.name == "metadata.version" for each in records):
        raise RecordsError("no metadata.version: a controller refuses to start")


@dataclass(slots=True)
class BrokerFiles:
    """The rows of one or more data directories, each a dict by column."""

    checkpoints: list[dict[str, Any]] = field(default_factory=list)
    epochs: list[dict[str, Any]] = field(default_factory=list)
    unreadable: list[dict[str, Any]] = field(default_factory=list)
    snapshots: list[dict[str, Any]] = field(default_factory=list)
    brokers: list[dict[str, Any]] = field(default_factory=list)
    segment_files: list[dict[str, Any]] = field(default_factory=list)
    futures: list[dict[str, Any]] = field(default_factory=list)
    metadata_faults: list[dict[str, Any]] = field(default_factory=list)

    def look(self, tree: Tree) -> None:
        """Read one data directory."""
        listed = list(tree.names())
        names = {name for name, _ in listed}
        self.metadata_faults += faults(tree)
        for name in OFFSET_CHECKPOINTS:
            offsets = self._read(tree, name, decode_offsets) if name in names else None
            self.checkpoints += [
                {"directory": tree.path, "topic": topic, "partition": number, "file": name, "offset": offset}
                for (topic, number), offset in (offsets or {}).items()
            ]
        if META_PROPERTIES in names:
            fields = decode_properties(tree.read(META_PROPERTIES))
            self.brokers.append({
                "directory": tree.path, "version": fields.get("version"), "cluster_id": fields.get("cluster.id"),
                "node_id": fields.get("broker.id" if fields.get("version") == "0" else "node.id"),
                "directory_id": fields.get("directory.id"),
                "is_clean": CLEAN_SHUTDOWN in names, "has_log_starts": LOG_START in names,
            })  # fmt: skip
            folders = [name for name, is_directory in listed if is_directory]
            for name in filter(is_refused_folder, folders):
                self._complain(name, "a folder of no partition: a broker does not start", {"directory": tree.path})
        if BOOTSTRAP in names:
            self._read(tree, BOOTSTRAP, _check_bootstrap)
        for name, is_directory in listed:
            if is_directory and (future := _FUTURE.match(name)) is not None:
                size = sum(tree.size(f"{name}/{each}") for each, _ in tree.names(name) if each.endswith(".log"))
                place = {"directory": tree.path, "topic": future[1], "partition": int(future[2])}
                self.futures.append({**place, "folder": name, "bytes": size})
            key = partition_of(name) if is_directory else None
            if key is not None:
                place = {"directory": tree.path, "topic": key[0], "partition": key[1]}
                files = [each for each, is_folder in tree.names(name) if not is_folder]
                for each in filter(is_refused_file, files):
                    self._complain(f"{name}/{each}", "the name has no offset: a broker does not start", place)
                self._partition(tree, name, files, place)
                self._indexes(tree, name, files, place, is_clean=CLEAN_SHUTDOWN in names)

    def _indexes(self, tree: Tree, folder: str, names: Sequence[str], place: dict[str, Any], *, is_clean: bool) -> None:
        """Compare index files with segments.

        A clean shutdown leaves them trimmed. Before that, the last segment may be without them (Understudy writes them
        when it closes a segment), and a crash may leave those of a segment that is gone. A clean shutdown may leave a
        segment as `.swap` in the place of the old one, and a broker completes that (2.8.2: its cleaner ends after the
        scheduler of deletions has), or a half of one as `.cleaned`, which a broker removes (4.4.0).
        """
        parts = [part for name in names if (part := segment_part(name)) is not None]
        by_suffix = {suffix: {base for base, each in parts if each == suffix} for suffix in ("log", *ENTRIES)}
        segments = by_suffix["log"]
        if segments and LEADER_EPOCHS not in names:
            self._complain_of_segment(f"{folder}/{LEADER_EPOCHS}", min(segments), "missing", place)
        for suffix in ENTRIES:
            left = [(base, "left without its segment") for base in by_suffix[suffix] - segments if is_clean]
            whole = segments if is_clean else segments - {max(segments, default=-1)}
            gone = [(base, "missing") for base in whole - by_suffix[suffix]] if suffix != "txnindex" else []
            for base, what in sorted(left + gone):
                self._complain_of_segment(f"{folder}/{base:020d}.{suffix}", base, what, place)
        # Without ".swap".
        swapped = {part[0] for name in names if name.endswith(".log.swap") and (part := segment_part(name[:-5]))}
        for name in names if is_clean else ():
            part = segment_part(name.removesuffix(_SWAP)) if name.endswith(_SWAP) else None
            if part is not None and part[0] not in swapped - segments:
                self._complain_of_segment(f"{folder}/{name}", part[0], "left by a compaction that did not end", place)
        if not is_clean or folder == _METADATA:  # Kafka 4.4 leaves the indexes of its metadata log
            return
        for base in sorted(by_suffix["index"]):
            path = f"{folder}/{base:020d}.index"
            if tree.read(path)[-_ZEROS:] == bytes(_ZEROS):
                self._complain_of_segment(path, base, "not trimmed", place)

    def _complain_of_segment(self, path: str, base: int, what: str, place: dict[str, Any]) -> None:
        self.segment_files.append({**place, "segment_base": base, "file": path, "what": what})

    def _partition(self, tree: Tree, folder: str, names: Sequence[str], place: dict[str, Any]) -> None:
        for name in names:
            path = f"{folder}/{name}"
            if name == LEADER_EPOCHS:
                for number, each in enumerate(self._read(tree, path, decode_epochs, place) or ()):
                    self.epochs.append(
                        {**place, "entry": number, "epoch": each.epoch, "start_offset": each.start_offset}
                    )
            elif name == PARTITION_METADATA:
                self._read(tree, path, decode_partition_metadata, place)
            elif path == QUORUM_STATE:
                self._read(tree, path, check_quorum_state, place)
            elif folder == _METADATA and metadata_snapshot(name) is not None:
                self._read(tree, path, _snapshot_records, place)
            elif (part := segment_part(name)) is not None:
                if part[1] == "snapshot":
                    self._snapshot(tree, path, {**place, "snapshot_offset": part[0]})
                elif part[1] != "log":
                    self._index(tree, path, part[1], place)

    def _snapshot(self, tree: Tree, path: str, place: dict[str, Any]) -> None:
        records = self._read(
            tree, path, decode_snapshot, {name: place[name] for name in ("directory", "topic", "partition")}
        )
        for number, each in enumerate(records or ()):
            last = each.batches[-1] if each.batches else None
            self.snapshots.append({
                **place, "entry": number, "producer_id": each.producer_id, "producer_epoch": each.producer_epoch,
                "last_sequence": None if last is None else last.last_sequence,
                "last_offset": None if last is None else last.last_offset,
                "offset_delta": None if last is None else last.last_offset - last.first_offset,
                "timestamp_ms": each.last_timestamp_ms,
                "coordinator_epoch": each.coordinator_epoch, "transaction_offset": each.transaction_first_offset,
            })  # fmt: skip
        if records == []:
            self.snapshots.append(place)

    def _index(self, tree: Tree, path: str, kind: str, place: dict[str, Any]) -> None:
        """Check an index by its size alone, because indexes are large; a transaction index also by its version."""
        size, entry = tree.size(path), ENTRIES[kind][1].itemsize
        if size % entry:
            self._complain(path, f"{size} bytes, which is not a multiple of an entry's {entry}", place)
        elif kind == "txnindex" and size:
            raw = tree.read(path)
            strange = {raw[at : at + 2] for at in range(0, len(raw), entry)} - {b"\0\0"}
            if strange:
                self._complain(path, f"an entry of version {int.from_bytes(min(strange))}", place)

    def _read(
        self, tree: Tree, path: str, decode: Callable[[bytes], Any], place: dict[str, Any] | None = None
    ) -> Any | None:
        raw = tree.read(path)
        if not raw and decode in (decode_offsets, decode_epochs):  # Kafka creates them empty
            return None
        try:
            return decode(raw)
        except (CheckpointError, SnapshotCorruptError, RecordsError, QuorumStateError) as error:
            self._complain(path, str(error), place or {"directory": tree.path})
            return None

    def _complain(self, path: str, reason: str, place: dict[str, Any]) -> None:
        self.unreadable.append({**place, "file": path, "reason": reason})
