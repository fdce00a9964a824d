"""Targets of a load: one for each partition, with the records that it gets."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.transfer import parquet
from pipeline.transfer.manifest import Manifest, Store
from pipeline.transfer.selection import Choice

_CHUNK_ROWS, _CHUNK_BYTES = 64 * 1024, 32 << 20


class LoadError(RuntimeError):
    """Error of a load that is not possible; the message is for the user."""


@dataclass(frozen=True, slots=True)
class Target:
    """Target of a partition, for its task."""

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
    """The earliest time of all that is loaded: what `speed` counts from, the same for all partitions."""
    base_offset: int = 0
    """Of a running cluster's partition: where its records begin. As many as lie behind are loaded already."""
    began_s: float = 0.0
    """Time to produce a record of that timestamp, in seconds since 1970."""


def targets(store: Store, manifest: Manifest, choice: Choice, *, codec: int = 0, speed: float = 0.0) -> list[Target]:
    """One for each wanted partition, empty ones too. Raises LoadError: nothing is wanted, or two become one."""
    wanted = [name for name in manifest.topics if choice.wants(name)]
    if not wanted:
        raise LoadError(f"{store.path} has no topic that is wanted; there are {', '.join(manifest.topics) or 'none'}")
    if (double := choice.twice(wanted)) is not None:
        raise LoadError(f"two topics would become {double}")
    paths = {each.path for each in manifest.files if each.topic in wanted}
    first_ms = parquet.first_time_ms(store, sorted(paths)) if speed > 0 else 0
    found = []
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
            found.append(
                Target(
                    store.path, name, choice.name_of(name), number, files, bounds.log_start, bounds.log_end,
                    manifest.producers, manifest.configs.get(name, {}), codec, speed, first_ms,
                )
            )  # fmt: skip
    return found


def counts(wanted: Iterable[Target]) -> dict[str, tuple[int, Mapping[str, str]]]:
    """Topic -> number of partitions and settings, as a cluster creates it."""
    found: dict[str, tuple[int, Mapping[str, str]]] = {}
    for each in wanted:
        count = max(found.get(each.topic, (0, {}))[0], each.partition + 1)
        found[each.topic] = (count, each.configs)
    return found


def tables(target: Target) -> Iterator[pa.Table]:
    """The partition's records, in order, in pieces that end where a batch ends."""
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
    """Number of rows to hold at a time: fewer for large records."""
    size: int = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
    fitting: int = _CHUNK_BYTES * metadata.num_rows // max(1, size)
    return min(_CHUNK_ROWS, max(1, fitting))


def _groups_of(metadata: pq.FileMetaData, partition: int) -> list[int]:
    """The row groups of a file that can hold records of the partition, by their statistics."""
    column = metadata.schema.to_arrow_schema().get_field_index("partition")  # none before it is nested
    found = []
    for number in range(metadata.num_row_groups):
        bounds = metadata.row_group(number).column(column).statistics
        if bounds is None or not bounds.has_min_max or bounds.min <= partition <= bounds.max:
            found.append(number)
    return found


def _cut(table: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Up to the last batch, which may go on in the next piece; and that batch."""
    bases = table.column("batch_base_offset").to_numpy()
    start = int(np.flatnonzero(bases == bases[-1])[0])
    return table.slice(0, start), table.slice(start)
