"""Reads the tables `state_*`: records of `__consumer_offsets` and the other coordinator logs, each log in one pass."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.audits.logs import SMALL_ROWS, Log, packed
from pipeline.audits.sidecar_files import PartitionFiles
from pipeline.locations import locate
from pipeline.metadata_log import TOPIC, newest_snapshot
from pipeline.plan import plan_records, read_records
from pipeline.query import Query, record_schema
from pipeline.replicas import find_partitions
from pipeline.schemas import STATE, STATE_RECORDS, STATE_TOPICS, ddl
from pipeline.state import decode_all_state

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pipeline.audits.table_cache import TableCache

TOPICS: Final = STATE_TOPICS["unknown"]
_BY_KIND: Final = pa.schema([pa.field(kind, pa.struct(list(schema))) for kind, schema in STATE.items()])
_WRITTEN: Final = pa.schema([pa.field("rows", pa.int64())])
_QUERY: Final = Query(record_schema(STATE_RECORDS, "skip"), TOPICS, mode="skip")


def logs_of(directories: Sequence[str], *, of_metadata: bool) -> list[Log]:
    """Return the metadata logs, or the coordinators' logs, of some data directories: every replica.

    A running broker writes a topic to the coordinators' logs once it is in the metadata, and records a coordinator's
    decision before it acts in other logs. Therefore read the coordinators before those logs, and the metadata after
    them.
    """
    topics = [each for each in TOPICS if (each == TOPIC) == of_metadata]
    return [(directory, each) for directory in directories for each in find_partitions(directory, topics=topics)]


def read_state_logs(logs: Iterable[Log]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield kind and rows (`schemas.STATE`) of the records in some logs. Other tables report damaged batches."""
    for _, partition in logs:
        for split in plan_records([partition], _QUERY):
            for records in read_records(split, _QUERY):
                yield from decode_all_state(records).items()


def each_once(rows: pa.Table) -> pa.Table:
    """Return the rows without duplicates from other replicas."""
    seen = {repr(row): number for number, row in reversed(list(enumerate(rows.to_pylist())))}
    return rows.take(pa.array(sorted(seen.values()), pa.int64()))


def older_metadata(files: Iterable[PartitionFiles]) -> list[dict[str, Any]]:
    """Return the rows of the newest readable metadata snapshot, if no directory has the metadata log from its start."""
    begins = [each for each in files if each.topic == TOPIC]
    if not begins or min(each.first_segment_base for each in begins) == 0:
        return []
    newest = (newest_snapshot(locate(each.directory).child(f"{TOPIC}-{each.partition}")) for each in begins)
    found = [each for each in newest if each is not None]
    return max(found, key=lambda each: each.end).rows if found else []


class StateTables:
    """The records of each kind without duplicates from replicas, read in two steps on Spark."""

    def __init__(self, cache: "TableCache", directories: Sequence[str]) -> None:
        self._cache, self._directories = cache, directories
        self._frames: list[DataFrame] = []

    def read(self, *, of_metadata: bool) -> None:
        """Read the metadata records or the coordinators'; on a cluster Spark reads them when they are used."""
        groups = packed(logs_of(self._directories, of_metadata=of_metadata))
        if not groups:
            return
        numbers = self._cache.spark.range(0, len(groups), 1, len(groups))
        folder = self._cache.folder
        if folder is None:
            self._frames.append(self._cache.cached(numbers.mapInArrow(partial(_rows, groups=groups), ddl(_BY_KIND))))
            return
        for kind in STATE:
            (folder / f"read-{kind}").mkdir(exist_ok=True)
        work = partial(_written, groups=groups, folder=str(folder), name="metadata" if of_metadata else "coordinators")
        numbers.mapInArrow(work, ddl(_WRITTEN)).toArrow()

    def tables(self) -> "Mapping[str, DataFrame]":
        """Return the tables of what was read."""
        if (folder := self._cache.folder) is not None:
            return {kind: _table(self._cache, kind, folder / f"read-{kind}") for kind in STATE}
        if not self._frames:
            return {kind: self._cache.spark.createDataFrame([], ddl(schema)) for kind, schema in STATE.items()}
        whole = reduce(lambda one, other: one.unionByName(other), self._frames)
        return {kind: whole.where(f"{kind} IS NOT NULL").select(f"{kind}.*").distinct() for kind in STATE}


def _table(cache: "TableCache", kind: str, folder: Path) -> "DataFrame":
    files = sorted(folder.glob("*.parquet"))
    if sum(pq.read_metadata(each).num_rows for each in files) > SMALL_ROWS:
        return cache.kept(f"state_{kind}", cache.spark.read.schema(ddl(STATE[kind])).parquet(str(folder)).distinct())
    rows = pa.concat_tables([STATE[kind].empty_table(), *(pq.read_table(each, schema=STATE[kind]) for each in files)])
    return cache.spark.createDataFrame(each_once(rows), ddl(STATE[kind]))


def _rows(numbers: Iterable[pa.RecordBatch], *, groups: Sequence[Sequence[Log]]) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for number in batch.column("id").to_pylist():
            for kind, rows in read_state_logs(groups[number]):
                columns = {kind: rows.to_struct_array()}
                yield pa.RecordBatch.from_arrays(
                    [columns.get(field.name, pa.nulls(len(rows), field.type)) for field in _BY_KIND], schema=_BY_KIND
                )


def _written(
    numbers: Iterable[pa.RecordBatch], *, groups: Sequence[Sequence[Log]], folder: str, name: str
) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for number in batch.column("id").to_pylist():
            files: dict[str, pq.ParquetWriter] = {}
            count = 0
            try:
                for kind, rows in read_state_logs(groups[number]):
                    if kind not in files:
                        files[kind] = pq.ParquetWriter(
                            f"{folder}/read-{kind}/{name}-{number:05d}.parquet", STATE[kind], compression="lz4"
                        )
                    files[kind].write_batch(rows)
                    count += len(rows)
            finally:
                for file in files.values():
                    file.close()
            yield pa.RecordBatch.from_pydict({"rows": [count]}, schema=_WRITTEN)
