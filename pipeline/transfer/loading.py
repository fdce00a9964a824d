"""Parquet and its manifest -> a data directory that a broker serves, or a running cluster.

One task per partition. Into a directory everything is kept: offsets, times, and the producers' side where the export
has it. A running cluster gives offsets of its own.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from pipeline.encoding import Batching, encode
from pipeline.schemas import ddl
from pipeline.transfer import parquet
from pipeline.transfer.choosing import Choice
from pipeline.transfer.manifest import Bounds, Manifest, Store
from pipeline.transfer.wire import Cluster
from protocol.records.records import frame_batch
from storage.checkpoints import (
    HIGH_WATERMARK,
    LOG_START,
    RECOVERY_POINT,
    CheckpointError,
    decode_offsets,
    encode_offsets,
)
from storage.config import LogConfig
from storage.environment import LogEnvironment
from storage.files import DiskFiles
from storage.partition_log import PartitionLog
from storage.recovery import Checkpointed
from storage.recovery import load as open_log

_CHUNK_ROWS = 64 * 1024
_FAR_MS = 2**62
_BURST_MS = 100
"""Records so close together in a replay at a speed go out together."""


class LoadError(RuntimeError):
    """What cannot be loaded there; the message is for the user."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a partition goes, as its task needs to know it."""

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


def targets(store: Store, manifest: Manifest, choice: Choice, *, codec: int = 0, speed: float = 0.0) -> list[Target]:
    """One for each wanted partition, empty ones too. Raises LoadError: nothing is wanted, or two become one."""
    wanted = [name for name in manifest.topics if choice.wants(name)]
    names = [choice.name_of(name) for name in wanted]
    if not wanted:
        raise LoadError(f"{store.path} has no topic that is wanted; there are {', '.join(manifest.topics) or 'none'}")
    if len(set(names)) < len(names):
        double = next(name for name in names if names.count(name) > 1)
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


def into_directory(spark: SparkSession, directory: str, wanted: Sequence[Target], now_ms: int) -> int:
    """Write the logs of topics that a broker has created in its data directory, while no broker has it open.

    Raises:
        LoadError: a partition is not there, or not empty.
        DirectoryLockedError: a broker has the directory open.
    """
    files = DiskFiles(directory)
    files.lock()
    try:
        for each in wanted:
            _check_empty(files, each)
        load = partial(_write_partition, directory=directory, now_ms=now_ms)
        done = _each(spark, wanted, load)
        own = {(row["topic"], row["partition"]): row for row in done}
        for name, field in ((HIGH_WATERMARK, "log_end"), (RECOVERY_POINT, "log_end"), (LOG_START, "log_start")):
            known = {}
            with suppress(FileNotFoundError, CheckpointError):
                known = decode_offsets(files.read_file(name))
            known |= {key: row[field] for key, row in own.items() if name != LOG_START or row["starts_within"]}
            files.replace(name, encode_offsets(known))
    finally:
        files.close()
    return sum(row["records"] for row in done)


def into_cluster(spark: SparkSession, bootstrap: str, wanted: Sequence[Target]) -> int:
    """Produce to the topics of a running cluster; how many records. Raises WireError."""
    load = partial(_produce_partition, bootstrap=bootstrap)
    return sum(row["records"] for row in _each(spark, wanted, load))


def _each(
    spark: SparkSession, wanted: Sequence[Target], load: Callable[[Target], dict[str, Any]]
) -> list[dict[str, Any]]:
    """Run `load` for every target, on the workers; its answers."""
    rows = [(json.dumps(asdict(each)),) for each in wanted]
    frame = spark.createDataFrame(rows, "target string").repartition(max(1, len(rows)))
    answers = frame.mapInArrow(partial(_run, load=load), ddl(parquet.TOLD)).toArrow()
    return [json.loads(text) for text in answers.column("told").to_pylist()]


def _run(
    batches: Iterable[pa.RecordBatch], *, load: Callable[[Target], dict[str, Any]]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for text in batch.column("target").to_pylist():
            told = json.loads(text)
            answer = load(Target(**{**told, "files": tuple(told["files"])}))
            yield pa.RecordBatch.from_pydict({"told": [json.dumps(answer)]}, schema=parquet.TOLD)


# --- what a task does ------------------------------------------------------------------------------------------------


def tables(target: Target) -> Iterator[pa.Table]:
    """The partition's records, in order, in pieces that end where a batch ends."""
    store = Store(target.store)
    rest: pa.Table | None = None
    for path in target.files:
        with store.files.open_input_file(store.full(path)) as file:
            for batch in pq.ParquetFile(file).iter_batches(_CHUNK_ROWS):
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


def _cut(table: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Up to the last batch, which may go on in the next piece; and that batch."""
    bases = table.column("batch_base_offset").to_numpy()
    start = int(np.flatnonzero(bases == bases[-1])[0])
    return table.slice(0, start), table.slice(start)


def _write_partition(target: Target, *, directory: str, now_ms: int) -> dict[str, Any]:
    environment = LogEnvironment(DiskFiles(directory))
    config = LogConfig.from_settings(target.configs)
    log = open_log(
        environment, f"{target.topic}-{target.partition}", target.topic, target.partition,
        config=config, checkpointed=Checkpointed(), clean=True, now_ms=now_ms,
    )  # fmt: skip
    how = Batching(codec=target.codec, producers=target.producers)
    records = 0
    for table in tables(target):
        if not records:
            first = table.column("batch_base_offset" if how.producers else "offset")[0].as_py()
            _begin_at(log, min(target.log_start, first), now_ms)
        records += table.num_rows
        for batch in encode(table, how):
            log.append_as_follower(batch, now_ms=now_ms)
    if not records:
        _begin_at(log, target.log_start, now_ms)
    _end_at(log, target, now_ms)
    log.restore_high_watermark(log.log_end_offset)
    log.delete_records_before(target.log_start, now_ms)  # within its first batch, where DeleteRecords had cut one
    end, first = log.log_end_offset, log.segments.first.base_offset
    log.close(now_ms, clean=True)
    return {
        "topic": target.topic, "partition": target.partition, "records": records, "log_start": target.log_start,
        "log_end": end, "starts_within": target.log_start > first,
    }  # fmt: skip


def _begin_at(log: PartitionLog, offset: int, now_ms: int) -> None:
    if offset:
        log.truncate_fully_and_start_at(offset, now_ms)
        log.environment.remove_due(_FAR_MS)


def _end_at(log: PartitionLog, target: Target, now_ms: int) -> None:
    """The log ends where it ended, though its last records were not copied: an empty batch, as a cleaner leaves it."""
    if target.log_end > log.log_end_offset:
        base = log.log_end_offset
        empty = frame_batch(
            b"", 0, base_offset=base, last_offset_delta=target.log_end - 1 - base, base_timestamp_ms=-1,
            max_timestamp_ms=-1, partition_leader_epoch=0,
        )  # fmt: skip
        log.append_as_follower(empty, now_ms=now_ms)


def _check_empty(files: DiskFiles, target: Target) -> None:
    folder = f"{target.topic}-{target.partition}"
    if not files.is_directory(folder):
        raise LoadError(f"{folder} is not in the directory: the topic has fewer partitions there")
    names = [name for name in files.list(folder) if name.endswith(".log")]
    if any(files.size(f"{folder}/{name}") for name in names):
        raise LoadError(f"{folder} holds records already; a load goes into empty topics (see --topic-map)")


def _produce_partition(target: Target, *, bootstrap: str) -> dict[str, Any]:
    with Cluster(bootstrap) as cluster:
        records = replay(target, partial(cluster.produce, target.topic, target.partition))
    return {"topic": target.topic, "partition": target.partition, "records": records}


def replay(
    target: Target,
    produce: Callable[[bytearray], object],
    *,
    now_s: Callable[[], float] = time.monotonic,  # noqa: TID251 - this is what a speed means
    sleep: Callable[[float], object] = time.sleep,  # noqa: TID251 - as above
) -> int:
    """Give a partition's batches to `produce`, each when it is due at the target's speed (0: at once).

    A batch is due when its last record was written, counted from `first_ms`. Returns how many records there were.
    """
    how = Batching(codec=target.codec, span_ms=max(1, int(_BURST_MS * target.speed)) if target.speed > 0 else None)
    records, began = 0, now_s()
    for table in tables(target):
        if target.producers:
            table = table.filter(pc.invert(table.column("is_control")))  # noqa: PLW2901 - markers cannot be produced
        records += table.num_rows
        for batch in encode(_as_new(table), how):
            batch[:8] = bytes(8)  # a producer counts from 0; the checksum does not cover it
            if target.speed > 0:
                at_ms = int.from_bytes(batch[35:43], signed=True)
                sleep(max(0.0, began + (at_ms - target.first_ms) / 1000 / target.speed - now_s()))
            produce(batch)
    return records


def _as_new(table: pa.Table) -> pa.Table:
    """Records as a producer sends them: without holes, and with times of its own."""
    for name, values in (("offset", np.arange(table.num_rows)), ("timestampType", np.zeros(table.num_rows))):
        at = table.schema.get_field_index(name)
        table = table.set_column(at, table.schema.field(at), pa.array(values).cast(table.schema.field(at).type))
    return table


def empty_bounds() -> Bounds:
    """Of a partition without records."""
    return Bounds(0, 0)
