"""The small files of a data directory as rows: checkpoints, producer snapshots, identities, and what cannot be read.

What cannot be read is a finding of its own: no check may take a broken file for a missing one.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from pipeline.audits.sidecar_files import ENTRIES, Tree
from protocol.log_records.quorum import snapshot_values
from protocol.records.errors import RecordsError
from storage.checkpoints import (
    CLEAN_SHUTDOWN,
    LEADER_EPOCHS,
    META_PROPERTIES,
    PARTITION_METADATA,
    CheckpointError,
    decode_epochs,
    decode_offsets,
    decode_partition_metadata,
    decode_properties,
)
from storage.log_dir import partition_of
from storage.ownership import OFFSET_CHECKPOINTS, segment_part
from storage.producers.snapshot import SnapshotCorruptError, decode_snapshot
from storage.quorum_files import QUORUM_STATE, QuorumStateError, check_quorum_state, metadata_snapshot

_METADATA: Final = "__cluster_metadata-0"
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
"""One row per file that cannot be read; topic and partition are null for a file of the whole directory."""
SNAPSHOTS: Final = pa.schema(
    [
        *_PLACE,
        pa.field("snapshot_offset", pa.int64()),  # from the file's name
        pa.field("entry", pa.int32()),  # number within the file; null for one without any
        pa.field("producer_id", pa.int64()),
        pa.field("producer_epoch", pa.int32()),
        pa.field("last_sequence", pa.int64()),  # null where no batch is kept
        pa.field("last_offset", pa.int64()),
        pa.field("coordinator_epoch", pa.int32()),
        pa.field("transaction_offset", pa.int64()),  # where an open transaction begins; null without one
    ]
)
"""One row per producer of a producer snapshot."""
BROKERS: Final = pa.schema(
    [
        pa.field("directory", pa.string()),
        *(pa.field(name, pa.string()) for name in ("version", "cluster_id", "node_id", "directory_id")),
        pa.field("is_clean", pa.bool_()),  # its broker stopped cleanly, and does not run
    ]
)
"""One row per `meta.properties`."""


TABLES: Final = {
    "checkpoints": CHECKPOINTS,
    "epochs": EPOCHS,
    "unreadable": UNREADABLE,
    "snapshots": SNAPSHOTS,
    "brokers": BROKERS,
}
"""The tables of `BrokerFiles` by their names."""


@dataclass(slots=True)
class BrokerFiles:
    """The rows of one or several data directories, each a dict by column."""

    checkpoints: list[dict[str, Any]] = field(default_factory=list)
    epochs: list[dict[str, Any]] = field(default_factory=list)
    unreadable: list[dict[str, Any]] = field(default_factory=list)
    snapshots: list[dict[str, Any]] = field(default_factory=list)
    brokers: list[dict[str, Any]] = field(default_factory=list)

    def look(self, tree: Tree) -> None:
        """Read one data directory."""
        listed = list(tree.names())
        names = {name for name, _ in listed}
        for name in OFFSET_CHECKPOINTS:
            found = self._read(tree, name, decode_offsets) if name in names else None
            self.checkpoints += [
                {"directory": tree.path, "topic": topic, "partition": number, "file": name, "offset": offset}
                for (topic, number), offset in (found or {}).items()
            ]
        if META_PROPERTIES in names:
            fields = decode_properties(tree.read(META_PROPERTIES))
            self.brokers.append({
                "directory": tree.path, "version": fields.get("version"), "cluster_id": fields.get("cluster.id"),
                "node_id": fields.get("node.id", fields.get("broker.id")), "directory_id": fields.get("directory.id"),
                "is_clean": CLEAN_SHUTDOWN in names,
            })  # fmt: skip
        for name, is_directory in listed:
            key = partition_of(name) if is_directory else None
            if key is not None:
                self._partition(tree, name, {"directory": tree.path, "topic": key[0], "partition": key[1]})

    def _partition(self, tree: Tree, folder: str, place: dict[str, Any]) -> None:
        for name, _ in tree.names(folder):
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
                self._read(tree, path, lambda raw: list(snapshot_values(raw)), place)
            elif (part := segment_part(name)) is not None:
                if part[1] == "snapshot":
                    self._snapshot(tree, path, {**place, "snapshot_offset": part[0]})
                elif part[1] != "log":
                    self._index(tree, path, part[1], place)

    def _snapshot(self, tree: Tree, path: str, place: dict[str, Any]) -> None:
        found = self._read(
            tree, path, decode_snapshot, {name: place[name] for name in ("directory", "topic", "partition")}
        )
        for number, each in enumerate(found or ()):
            last = each.batches[-1] if each.batches else None
            self.snapshots.append({
                **place, "entry": number, "producer_id": each.producer_id, "producer_epoch": each.producer_epoch,
                "last_sequence": None if last is None else last.last_sequence,
                "last_offset": None if last is None else last.last_offset,
                "coordinator_epoch": each.coordinator_epoch, "transaction_offset": each.transaction_first_offset,
            })  # fmt: skip
        if found == []:
            self.snapshots.append(place)

    def _index(self, tree: Tree, path: str, kind: str, place: dict[str, Any]) -> None:
        """Indexes are long, so only their sizes are looked at, and the versions of the short ones."""
        size, entry = tree.size(path), ENTRIES[kind][1].itemsize
        if size % entry:
            self._complain(path, f"{size} bytes, which are no whole entries of {entry}", place)
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
