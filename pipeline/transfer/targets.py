"""Targets of a load: one per partition, with the records for it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.transfer import parquet
from pipeline.transfer.manifest import Manifest, Store
from pipeline.transfer.selection import Choice

_CHUNK_ROWS, _CHUNK_BYTES = 64 * 1024, 32 << 20  # of a chunk in memory: wide rows make it shorter; ours


class LoadError(RuntimeError):
    """A load is not possible; the message is for the user."""


@dataclass(frozen=True, slots=True)
class Target:
    """A partition as the target of a task."""

    store: str
    source: str
    topic: str
    partition: int
    files: tuple[str, ...]
    log_start: int
    log_end: int
    producers: bool
    configs: Mapping[str, str]
    codec: int
    speed: float
    first_ms: int
    """The earliest timestamp of all loaded records, the reference of `speed`, the same for all partitions."""
    base_offset: int = 0
    """In a running cluster: the offset of the load's first record. Records from there on are loaded already."""
    began_s: float = 0.0
    """When to produce the record of that timestamp, in seconds since 1970."""


def targets(store: Store, manifest: Manifest, choice: Choice, *, codec: int = 0, speed: float = 0.0) -> list[Target]:
    """Return a target per selected partition, including empty ones. Raises LoadError: no selection, or a name clash."""
    wanted = [name for name in manifest.topics if choice.wants(name)]
    if not wanted:
        raise LoadError(f"{store.path} has no topic that is wanted; there are {', '.join(manifest.topics) or 'none'}")
    if (double := choice.twice(wanted)) is not None:
        raise LoadError(f"two topics would become {double}")
    paths = {each.path for each in manifest.files if each.topic in wanted}
    first_ms = parquet.first_time_ms(store, sorted(paths)) if speed > 0 else 0
    of_partitions = []
    for name in wanted:
        for number, bounds in manifest.topics[name].items():
            parts = [
                (part.first_offset, each.path)
                for each in manifest.files
                if each.topic == name
                for part in each.parts
                if part.partition == number
            ]
            files = tuple(dict.fromkeys(path for _, path in sorted(parts)))
            of_partitions.append(
                Target(
                    store.path, name, choice.name_of(name), number, files, bounds.log_start, bounds.log_end,
                    manifest.producers, manifest.configs.get(name, {}), codec, speed, first_ms,
                )
            )  # fmt: skip
    return of_partitions


def counts(wanted: Iterable[Target]) -> dict[str, tuple[int, Mapping[str, str]]]:
    """Return topic -> number of partitions and configurations, for creating the topic."""
    topics_by_name: dict[str, tuple[int, Mapping[str, str]]] = {}
    for each in wanted:
        count = max(topics_by_name.get(each.topic, (0, {}))[0], each.partition + 1)
        topics_by_name[each.topic] = (count, each.configs)
    return topics_by_name


def tables(target: Target) -> Iterator[pa.Table]:
    """Yield the partition's records, in order, in tables that end at the end of a batch."""
    store = Store(target.store)
    rest: pa.Table | None = None
    for path in target.files:
        with store.files.open_input_file(store.full(path)) as file:
            parquet_file = pq.ParquetFile(file)
            groups = _groups_of(parquet_file.metadata, target.partition)
            for batch in parquet_file.iter_batches(_chunk_rows(parquet_file.metadata), row_groups=groups):
                rows = batch.filter(pc.equal(batch.column("partition"), target.partition))
                if not rows.num_rows:
                    continue
                table = pa.Table.from_batches([rows])
                if rest is not None:
                    table = pa.concat_tables([rest, table])
                    rest = None
                if target.producers:
                    table, rest = _cut(table)
                if table.num_rows:
                    yield table
    if rest is not None:
        yield rest


def _chunk_rows(metadata: pq.FileMetaData) -> int:
    """Return the number of rows to hold at a time: fewer for large records."""
    size: int = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
    fitting: int = _CHUNK_BYTES * metadata.num_rows // max(1, size)
    return min(_CHUNK_ROWS, max(1, fitting))


def _groups_of(metadata: pq.FileMetaData, partition: int) -> list[int]:
    """Return the row groups of a file that may hold records of the partition, by their statistics."""
    column = metadata.schema.to_arrow_schema().get_field_index("partition")  # the columns before it are not nested
    numbers = []
    for number in range(metadata.num_row_groups):
        bounds = metadata.row_group(number).column(column).statistics
        if bounds is None or not bounds.has_min_max or bounds.min <= partition <= bounds.max:
            numbers.append(number)
    return numbers


def _cut(table: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Split a table before its last batch, which may continue in the next one."""
    bases = table.column("batch_base_offset").to_numpy()
    start = int(np.flatnonzero(bases == bases[-1])[0])
    return table.slice(0, start), table.slice(start)
