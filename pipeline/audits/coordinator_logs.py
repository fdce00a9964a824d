"""Reads the tables `state_*`: records of `__consumer_offsets` and the other coordinator logs, each log in one pass."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from pipeline.audits.logs import Log, logs_of
from pipeline.audits.sidecar_files import PartitionFiles
from pipeline.locations import locate
from pipeline.metadata_log import TOPIC, newest_snapshot
from pipeline.plan import plan_records, read_records
from pipeline.query import Query, record_schema
from pipeline.schemas import STATE_RECORDS, STATE_TOPICS
from pipeline.state import decode_all_state

TOPICS: Final = STATE_TOPICS["unknown"]
_QUERY: Final = Query(record_schema(STATE_RECORDS, "skip"), TOPICS, mode="skip")


def state_logs(directories: Sequence[str], *, of_metadata: bool) -> list[Log]:
    """Return the metadata logs, or the coordinators' logs, of some data directories: every replica.

    A running broker writes a topic to the coordinators' logs once it is in the metadata, and records a coordinator's
    decision before it acts in other logs. Therefore read the coordinators before those logs, and the metadata after
    them.
    """
    return logs_of(directories, [each for each in TOPICS if (each == TOPIC) == of_metadata])


def read_state_log(log: Log, prefix: str) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield rows (`schemas.STATE`) of the records in a log, with the kind as the table's name behind `prefix`.

    Other tables report damaged batches.
    """
    for split in plan_records([log[1]], _QUERY):
        for records in read_records(split, _QUERY):
            for kind, rows in decode_all_state(records).items():
                yield prefix + kind, rows


def older_metadata(files: Iterable[PartitionFiles]) -> list[dict[str, Any]]:
    """Return the rows of the newest readable metadata snapshot, if no directory has the metadata log from its start."""
    begins = [each for each in files if each.topic == TOPIC]
    if not begins or min(each.first_segment_base for each in begins) == 0:
        return []
    newest = (newest_snapshot(locate(each.directory).child(f"{TOPIC}-{each.partition}")) for each in begins)
    snapshots = [each for each in newest if each is not None]
    return max(snapshots, key=lambda each: each.end).rows if snapshots else []
