"""Checks `__cluster_metadata-0`: its records in replay order, its snapshots against the replay, and `quorum-state`."""

import json
import struct
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any, Final

import pyarrow as pa

from pipeline.audits.metadata_replay import Image
from pipeline.audits.sidecar_files import Tree
from protocol.log_records import metadata
from protocol.log_records.quorum import (
    kraft_version_of,
    leader_and_voters,
    quorum_records,
    snapshot_time_ms,
    snapshot_values,
    voter_ids,
)
from protocol.records.batch import RecordBatch, checked_batches
from protocol.records.errors import RecordsError
from protocol.records.records import ControlType, control_type, read_records
from protocol.uvarint import read_uvarint
from storage.checkpoints import META_PROPERTIES, decode_properties
from storage.ownership import segment_part
from storage.quorum_files import METADATA_DIRECTORY, QUORUM_STATE, metadata_snapshot

METADATA_FAULTS: Final = pa.schema(
    [
        pa.field("directory", pa.string()),
        pa.field("file", pa.string()),  # a snapshot or `quorum-state`; null for a record of the log
        pa.field("offset", pa.int64()),
        pa.field("type", pa.string()),
        pa.field("what", pa.string()),
    ]
)
"""One row per contradiction in the metadata of a data directory."""
_BROKEN: Final = (RecordsError, struct.error, IndexError, ValueError, OverflowError)
_VERSIONS: Final = {0, 1}
_MOST: Final = 20
"""Maximum number of differences that are reported of a snapshot: arbitrary, examples are enough."""

Snapshots = dict[tuple[int, int], str]
"""End offset and epoch of each snapshot -> its file name."""


def faults(tree: Tree) -> list[dict[str, Any]]:
    """Return the faults of one data directory; none if it has no metadata log."""
    names = [name for name, _ in tree.names(METADATA_DIRECTORY)] if _has_metadata(tree) else []
    segments = sorted(part[0] for name in names if (part := segment_part(name)) is not None and part[1] == "log")
    if not segments:
        return []
    snapshots = {key: name for name in sorted(names) if (key := metadata_snapshot(name)) is not None}
    batches = list(_batches(tree, segments))
    fault_rows = [
        *_controls(batches, _first_version(tree, segments[0], snapshots)),
        *_replayed(tree, segments[0], batches, snapshots),
        *_quorum(tree, names, max((batch.partition_leader_epoch for batch in batches), default=-1)),
    ]
    return [{"directory": tree.path, **each} for each in fault_rows]


def _has_metadata(tree: Tree) -> bool:
    return any(name == METADATA_DIRECTORY and is_directory for name, is_directory in tree.names())


def _batches(tree: Tree, segments: Sequence[int]) -> Iterator[RecordBatch]:
    """Return the batches of the log up to the first damaged one, which another check reports."""
    for base in segments:
        try:
            yield from checked_batches(tree.read(f"{METADATA_DIRECTORY}/{base:020d}.log"))
        except RecordsError:
            return


def _values(batch: RecordBatch) -> Iterator[tuple[int, bytes, Any]]:
    """Yield offset, value and record of each record in a batch that can be decoded."""
    try:
        for each in read_records(batch):
            if each.value is None:
                continue
            try:
                yield each.offset, each.value, metadata.decode(None, each.value)  # None: of a kind of a later Kafka
            except _BROKEN:
                continue  # the check `coordinator-record` reports it
    except RecordsError:
        return


def _first_version(tree: Tree, first: int, snapshots: Snapshots) -> int:
    """Return the `kraft.version` before the log, which never decreases, at most: that of its snapshots."""
    names = [name for (end, _), name in snapshots.items() if end == 0 or first > 0]
    return max((_version(tree.read(f"{METADATA_DIRECTORY}/{name}")) for name in names), default=int(first > 0))


def _version(contents: bytes) -> int:
    try:
        records = list(quorum_records(contents))
        return max((kraft_version_of(value) for kind, value in records if kind == ControlType.KRAFT_VERSION), default=0)
    except _BROKEN:
        return 1  # the check `file-unreadable` reports it


def _controls(batches: Sequence[RecordBatch], version: int) -> Iterator[dict[str, Any]]:
    """Yield control records that are none of a quorum's log: a node that reads them fails (KafkaRaftClient).

    `version`: the `kraft.version` at its start. Voters are recorded from 1 on (KIP-853).
    """
    for batch in batches:
        try:
            records = list(read_records(batch)) if batch.is_control else []
        except RecordsError:
            continue  # the check `records-unreadable` reports it
        for each in records:
            kind, value = control_type(each.key), bytes(each.value or b"")
            what = _control_fault(kind, value)
            if what is None and kind == ControlType.KRAFT_VERSION:
                version = max(version, kraft_version_of(value))
            if what is None and kind == ControlType.KRAFT_VOTERS and version < 1:
                what = "a voter set without a kraft.version"
            if what is not None:
                yield {"offset": each.offset, "type": "control", "what": what}


def _control_fault(kind: int | None, value: bytes) -> str | None:
    try:
        if kind == ControlType.LEADER_CHANGE:
            leader_id, voters = leader_and_voters(value)
            return None if leader_id in voters else f"a leader that is not a voter, {leader_id}"
        if kind == ControlType.KRAFT_VOTERS:
            return None if voter_ids(value) else "a voter set without voters"
        if kind == ControlType.KRAFT_VERSION:
            return None if kraft_version_of(value) >= 0 else "a negative kraft.version"
    except _BROKEN:
        return "a control record that cannot be read"
    return f"a control record of type {kind}"


def _replayed(tree: Tree, first: int, batches: Sequence[RecordBatch], snapshots: Snapshots) -> Iterator[dict[str, Any]]:
    images = {key: _snapshot(tree, key[0], name) for key, name in snapshots.items()}
    for key, name in snapshots.items():
        place = {"file": f"{METADATA_DIRECTORY}/{name}", "offset": key[0], "type": "snapshot"}
        _, complaints, time_ms = images[key]
        end = batches[-1].next_offset if batches else first
        yield from ({**place, "what": each} for each in (*complaints[:_MOST], *_bounds(key, time_ms, batches, end)))
    if first > 0 and all(end < first for end, _ in snapshots):
        yield {"offset": first, "type": "log", "what": "records between the newest snapshot and the log are gone"}
        return
    start = 0 if first == 0 else min(end for end, _ in snapshots if end >= first)
    image = Image() if first == 0 else next(deepcopy(each[0]) for key, each in images.items() if key[0] == start)
    image.is_snapshot = False
    yield from _along(image, start, batches, {key[0]: (images[key][0], name) for key, name in snapshots.items()})


def _bounds(key: tuple[int, int], time_ms: int, batches: Sequence[RecordBatch], end: int) -> Iterator[str]:
    """Yield contradictions between a snapshot's name and header and the batch of its last record."""
    if key[0] > end:
        yield f"beyond the end of the log, {end}"
    inside = next((batch for batch in batches if batch.base_offset < key[0] <= batch.next_offset), None)
    if inside is not None and inside.partition_leader_epoch != key[1]:
        yield f"of another epoch than its last record, {inside.partition_leader_epoch}"
    if inside is not None and time_ms >= 0 and inside.max_timestamp_ms != time_ms:
        yield f"another time than that of its last record, {inside.max_timestamp_ms}"


def _along(
    image: Image, start: int, batches: Sequence[RecordBatch], snapshots: dict[int, tuple[Image, str]]
) -> Iterator[dict[str, Any]]:
    """Replay the log from `start`, and compare each snapshot at its end offset, if all records before it exist."""
    end = batches[-1].next_offset if batches else start
    waiting = sorted(each for each in snapshots if start < each <= end)
    for batch in batches:
        for offset, value, record in () if batch.is_control else _values(batch):
            while waiting and waiting[0] <= offset:
                yield from _differences(image, waiting[0], *snapshots[waiting.pop(0)])
            if offset >= start:
                image.offset = offset
                name = "unknown" if record is None else type(record).__name__
                complaints = [*image.add(record), *_later(value, image.features.get("metadata.version", 0))]
                yield from ({"offset": offset, "type": name, "what": each} for each in complaints)
    for each in waiting:
        yield from _differences(image, each, *snapshots[each])
    for what in (*image.led_by_others(), *image.without_partitions()):
        yield {"offset": end - 1, "type": "log", "what": what}


def _later(value: bytes, level: int) -> Iterator[str]:
    """Describe a kind or version of a record that `metadata.version` does not have, none of a later one."""
    kind, at = read_uvarint(value, 1)
    version, _ = read_uvarint(value, at)
    if level > metadata.LATEST_METADATA_VERSION:
        return
    if kind not in metadata.KINDS:
        yield f"a record of the unknown type {kind}"
    elif version > metadata.KINDS[kind][1]:
        yield f"version {version} of the record"


def _snapshot(tree: Tree, end: int, name: str) -> tuple[Image, list[str], int]:
    """Return the image of a snapshot, its internal faults, and the time of its last record; -1: it cannot be read."""
    image, complaints = Image(is_snapshot=True, offset=end - 1), list[str]()
    raw = tree.read(f"{METADATA_DIRECTORY}/{name}")
    try:
        for value in snapshot_values(raw):
            record = metadata.decode(None, value)
            complaints += [f"{type(record).__name__}: {each}" for each in image.add(record)]
        if _version(raw) < 1 and any(kind == ControlType.KRAFT_VOTERS for kind, _ in quorum_records(raw)):
            complaints.append("a voter set without a kraft.version")
        return image, complaints, snapshot_time_ms(raw)
    except _BROKEN:
        return image, [], -1  # the check `file-unreadable` reports it


def _differences(image: Image, end: int, other: Image, name: str) -> Iterator[dict[str, Any]]:
    replayed, kept = image.compared(), other.compared()
    if not other.features:  # it cannot be read
        return
    subjects = sorted((each for each in replayed.keys() | kept.keys() if replayed.get(each) != kept.get(each)), key=str)
    for each in subjects[:_MOST]:
        subject = " ".join(map(str, each))
        what = f"{subject}: {kept.get(each, 'nothing')} in the snapshot, {replayed.get(each, 'nothing')} in the log"
        yield {"file": f"{METADATA_DIRECTORY}/{name}", "offset": end, "type": "snapshot", "what": what}
    for subject, places in image.moved_to(other):
        what = f"directories of {subject}: {places} in the snapshot, others in the log"
        yield {"file": f"{METADATA_DIRECTORY}/{name}", "offset": end, "type": "snapshot", "what": what}


def _quorum(tree: Tree, names: Sequence[str], last_epoch: int) -> Iterator[dict[str, Any]]:
    """Yield contradictions in `quorum-state`; if it cannot be read, `file-unreadable` reports it."""
    place = {"file": QUORUM_STATE, "type": "quorum-state"}
    if "quorum-state" not in names:
        if last_epoch > 0 and tree.is_there(META_PROPERTIES):
            yield {**place, "what": "missing: the node may vote twice in an epoch"}
        return
    try:
        state = json.loads(tree.read(QUORUM_STATE))
        epoch, leader, version = (int(state[name]) for name in ("leaderEpoch", "leaderId", "data_version"))
        voters = {int(each["voterId"]) for each in state.get("currentVoters") or ()}
    except (ValueError, KeyError, TypeError):
        return
    if version not in _VERSIONS:
        yield {**place, "what": f"version {version}"}
    if 0 <= epoch < last_epoch:
        yield {**place, "what": f"epoch {epoch}, and the log has records of epoch {last_epoch}"}
    if version == 0 and leader >= 0 and leader not in voters:
        yield {**place, "what": f"the leader {leader} is not a voter"}
    own = decode_properties(tree.read(META_PROPERTIES)).get("cluster.id")
    if state.get("clusterId") and own and state["clusterId"] != own:
        yield {**place, "what": "of another cluster"}
