"""Reads the cluster metadata of a data directory: the newest snapshot (`*.checkpoint`) and the log after it.

A broker that has run for a week, or written 20 MB of metadata, has a snapshot; its log need not begin at 0 (KIP-630).
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final, NamedTuple

from pipeline.directory import Partition
from pipeline.locations import Location, files_below, read_file
from pipeline.plan import plan_records, read_records
from pipeline.query import Query, record_schema
from pipeline.replicas import find_partitions
from pipeline.schemas import STATE_RECORDS
from pipeline.state import decode_all_state, read_record
from protocol.log_records.quorum import is_whole, snapshot_values
from protocol.records.errors import RecordsError
from storage.quorum_files import metadata_snapshot

TOPIC: Final = "__cluster_metadata"
_QUERY: Final = Query(record_schema(STATE_RECORDS, "skip"), (TOPIC,), mode="skip")


class Snapshot(NamedTuple):
    """A metadata snapshot. `rows` are of `state_metadata`, at the last offset before its `end`."""

    end: int
    location: Location
    rows: list[dict[str, Any]]


def read_snapshot(end: int, location: Location) -> list[dict[str, Any]]:
    """Read the rows of a snapshot. Raises OSError, RecordsError."""
    contents = read_file(location)
    if not is_whole(contents):
        raise RecordsError(f"{location} is not a complete snapshot")
    place = {"topic": TOPIC, "partition": 0, "offset": end - 1, "is_tombstone": False}
    read = [read_record(TOPIC, None, value) for value in snapshot_values(contents)]
    return [{**place, **fields} for kind, fields in read if kind == "metadata"]


def newest_snapshot(folder: Location) -> Snapshot | None:
    """Return the newest readable snapshot in the directory of a metadata log."""
    located = {metadata_snapshot(entry.location.name): entry.location for entry in files_below(folder)}
    for (end, _), location in sorted(((key, place) for key, place in located.items() if key), reverse=True):
        with suppress(OSError, RecordsError):
            return Snapshot(end, location, read_snapshot(end, location))
    return None


def snapshot_before(log: Partition) -> Snapshot | None:
    """Return the snapshot for a log that does not begin at 0; only log records from its end on count."""
    return None if not log.segments or log.segments[0].base_offset == 0 else newest_snapshot(log.directory)


def metadata_logs(paths: str) -> list[Partition]:
    """Return the longest metadata log below a path; none if there is none."""
    return find_partitions(paths, topics=(TOPIC,))


def metadata_rows(logs: Iterable[Partition]) -> list[dict[str, Any]]:
    """Return all metadata records, in order: rows of `schemas.STATE["metadata"]`."""
    rows: list[dict[str, Any]] = []
    for log in logs:
        snapshot = snapshot_before(log)
        end = 0 if snapshot is None else snapshot.end
        rows += [] if snapshot is None else snapshot.rows
        for split in plan_records([log], _QUERY):
            for records in read_records(split, _QUERY):
                decoded = decode_all_state(records).get("metadata")
                if decoded is not None:
                    rows += [row for row in decoded.to_pylist() if row["offset"] >= end]
    return rows
