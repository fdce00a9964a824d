"""The cluster's metadata in a data directory: the newest snapshot (`*.checkpoint`), and the log's records after it.

A broker that has run for a week, or written 20 MB of metadata, has a snapshot; its log need not begin at 0 (KIP-630).
"""

from collections.abc import Iterable
from typing import Any, Final

from pipeline.directory import Partition, find_partitions
from pipeline.locations import Location, read_file
from pipeline.metadata_snapshots import snapshots
from pipeline.plan import plan_records, read_records
from pipeline.query import Query, record_schema
from pipeline.schemas import STATE_RECORDS
from pipeline.state import decode_all_state, read_record
from protocol.log_records.quorum import snapshot_values
from protocol.records.errors import RecordsError

TOPIC: Final = "__cluster_metadata"
_QUERY: Final = Query(record_schema(STATE_RECORDS, "skip"), (TOPIC,), mode="skip")


def snapshot_rows(folder: Location) -> list[dict[str, Any]]:
    """The records of the newest readable snapshot, as rows of `state_metadata` at the last offset before its end.

    Args:
        folder: the directory of the metadata log.
    """
    for end, location in snapshots(folder):
        place = {"topic": TOPIC, "partition": 0, "offset": end - 1, "is_tombstone": False}
        try:
            read = [read_record(TOPIC, None, value) for value in snapshot_values(read_file(location))]
        except (OSError, RecordsError):
            continue
        return [{**place, **fields} for kind, fields in read if kind == "metadata"]
    return []


def metadata_logs(paths: str) -> list[Partition]:
    """The longest metadata log below a path; none if there is none."""
    return find_partitions(paths, topics=(TOPIC,))


def metadata_rows(logs: Iterable[Partition]) -> list[dict[str, Any]]:
    """All records of the metadata, in order: rows of `schemas.STATE["metadata"]`."""
    rows: list[dict[str, Any]] = []
    for log in logs:
        older = [] if not log.segments or log.segments[0].base_offset == 0 else snapshot_rows(log.directory)
        end = max((row["offset"] for row in older), default=-1)
        rows += older
        for split in plan_records([log], _QUERY):
            for records in read_records(split, _QUERY):
                found = decode_all_state(records).get("metadata")
                if found is not None:
                    rows += [row for row in found.to_pylist() if row["offset"] > end]
    return rows
