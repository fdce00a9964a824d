"""Loads an export into a data directory, which a broker then serves, or into a running cluster.

In a directory, one task per partition keeps everything: offsets, times, and the producers' data if the export has it.
A running cluster assigns its own offsets. Without a session the tasks run one after another in this process.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from pipeline.encoding import Batching, encode
from pipeline.transfer import load_notes
from pipeline.transfer.producer import Producer
from pipeline.transfer.replay import begun, replay, shared_out
from pipeline.transfer.runner import runner
from pipeline.transfer.security import Security
from pipeline.transfer.targets import LoadError, Target, tables
from pipeline.transfer.tasks import Run
from pipeline.transfer.wire import LATEST, Cluster
from protocol.records.records import frame_batch
from storage.checkpoints import (
    HIGH_WATERMARK,
    LOG_START,
    RECOVERY_POINT,
    CheckpointError,
    decode_offsets,
    encode_offsets,
)
from storage.files import DiskFiles
from storage.log import truncation
from storage.log.config import LogConfig
from storage.log.context import SYNC_ROLL, LogContext
from storage.log.partition_log import PartitionLog
from storage.log.recovery import Checkpointed
from storage.log.recovery import load as open_log
from storage.log_dir import partition_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FAR_MS = 2**62  # after every timestamp
_MOST_DELTA = 2**31 - 1
"""Maximum distance from the base offset to the last offset of a batch: 32 bits."""

Load = Callable[[list[Target]], list[dict[str, Any]]]
"""Function of a task: its share of the targets -> its results."""


def into_directory(
    spark: "SparkSession | None", directory: str, wanted: Sequence[Target], now_ms: int, *, overwrite: bool = False,
    records: str = "",
) -> int:  # fmt: skip
    """Write the logs of topics that a broker has created in its data directory, while no broker has it open.

    `records` identifies the export and the selection. If the same load is run again after an interruption, it writes
    the unfinished partitions. Until then no broker opens the directory.

    Raises:
        LoadError: a partition is missing, or not empty and not to be overwritten; a topic has records in a partition
            that is not loaded; another load was interrupted here.
        DirectoryLockedError: a broker has the directory open.
    """
    files = DiskFiles(directory)
    files.lock()
    try:
        for each in wanted:
            _check(files, each, may_hold_records=overwrite or load_notes.is_unfinished(directory))
        _check_others(files, wanted)
        load_notes.begin(files, wanted, records)
        done = _each(runner(spark), [[each] for each in wanted], partial(_write, directory=directory, now_ms=now_ms))
        own = {(row["topic"], row["partition"]): row for row in done}
        for name, field in ((HIGH_WATERMARK, "log_end"), (RECOVERY_POINT, "log_end"), (LOG_START, "log_start")):
            known = {}
            with suppress(FileNotFoundError, CheckpointError):
                known = decode_offsets(files.read_file(name))
            known = {key: offset for key, offset in known.items() if key not in own}  # of a log that is replaced
            known |= {key: row[field] for key, row in own.items() if name != LOG_START or row["starts_within"]}
            files.replace(name, encode_offsets(known))
        load_notes.end(files)
    finally:
        files.close()
    return sum(row["records"] for row in done)


def into_cluster(
    spark: "SparkSession | None", bootstrap: str, wanted: Sequence[Target], security: Security | None = None
) -> int:
    """Produce to the topics of a running cluster; return the number of records. Raises WireError."""
    wanted = begun(wanted, time.time())  # noqa: TID251 - what a speed counts from
    shares = shared_out(wanted, 1 if spark is None else spark.sparkContext.defaultParallelism)
    return sum(
        row["records"]
        for row in _each(runner(spark), shares, partial(_produce, bootstrap=bootstrap, security=security))
    )


def _each(run: Run, shares: Sequence[Sequence[Target]], load: Load) -> list[dict[str, Any]]:
    """Run `load` for every share of the targets, each in its own task; return the results."""
    texts = [json.dumps([asdict(each) for each in share]) for share in shares]
    return [json.loads(text) for text in run(partial(_load_share, load=load, texts=texts), len(texts))]


def _load_share(number: int, *, load: Load, texts: Sequence[str]) -> Iterator[str]:
    share = [Target(**{**fields, "files": tuple(fields["files"])}) for fields in json.loads(texts[number])]
    return map(json.dumps, load(share))


# --- what a task does ------------------------------------------------------------------------------------------------


def _write(wanted: list[Target], *, directory: str, now_ms: int) -> list[dict[str, Any]]:
    return [_write_partition(each, directory=directory, now_ms=now_ms) for each in wanted]


def _write_partition(target: Target, *, directory: str, now_ms: int) -> dict[str, Any]:
    files = DiskFiles(directory)
    if (known := load_notes.answer_of(files, target)) is not None:
        return known
    load_notes.empty(files, target)
    context = LogContext(files, sync=SYNC_ROLL)  # a broker trusts the log because of the clean shutdown marker
    config = LogConfig.from_settings(target.configs)
    log = open_log(
        context, f"{target.topic}-{target.partition}", target.topic, target.partition,
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
    log.delete_records_before(target.log_start)  # within its first batch, if DeleteRecords ended there
    end, first = log.log_end_offset, log.segments.first.base_offset
    log.close(clean=True)
    answer = {
        "topic": target.topic, "partition": target.partition, "records": records, "log_start": target.log_start,
        "log_end": end, "starts_within": target.log_start > first,
    }  # fmt: skip
    load_notes.finish(files, target, answer)
    return answer


def _begin_at(log: PartitionLog, offset: int, now_ms: int) -> None:
    if offset:
        truncation.truncate_fully_and_start_at(log, offset, now_ms)
        log.context.remove_due(_FAR_MS)


def _end_at(log: PartitionLog, target: Target, now_ms: int) -> None:
    """Extend the log to its original end with empty batches, like the cleaner, if its last records are missing."""
    while target.log_end > log.log_end_offset:
        base = log.log_end_offset
        empty = frame_batch(
            b"", 0, base_offset=base, last_offset_delta=min(target.log_end - 1 - base, _MOST_DELTA),
            base_timestamp_ms=-1, max_timestamp_ms=-1, partition_leader_epoch=0,
        )  # fmt: skip
        log.append_as_follower(empty, now_ms=now_ms)


def _check(files: DiskFiles, target: Target, *, may_hold_records: bool) -> None:
    folder = f"{target.topic}-{target.partition}"
    if not files.is_directory(folder):
        raise LoadError(f"{folder} is not in the directory: the topic has fewer partitions there")
    if not may_hold_records and _holds_records(files, folder):
        raise LoadError(
            f"{folder} holds records already; a load goes into empty topics: use --overwrite to replace them, or "
            "--topic-map"
        )


def _check_others(files: DiskFiles, wanted: Sequence[Target]) -> None:
    """Raise LoadError if a topic has records in a partition that is not loaded, which would therefore remain."""
    keys = {(each.topic, each.partition) for each in wanted}
    topics = {topic for topic, _ in keys}
    for folder in files.list():
        key = partition_of(folder)
        if key is not None and key not in keys and key[0] in topics and _holds_records(files, folder):
            raise LoadError(
                f"{folder} holds records already, and the export has no such partition, so that they would stay: "
                "load into another directory, or use --topic-map"
            )


def _holds_records(files: DiskFiles, folder: str) -> bool:
    names = files.list(folder) if files.is_directory(folder) else ()
    return any(files.size(f"{folder}/{name}") for name in names if name.endswith(".log"))


def _produce(wanted: list[Target], *, bootstrap: str, security: Security | None) -> list[dict[str, Any]]:
    with Cluster(bootstrap, security=security) as cluster:
        done = [max(0, cluster.offset(each.topic, each.partition, LATEST) - each.base_offset) for each in wanted]
        producer = Producer(cluster)
        counts = replay(
            wanted, lambda target, batch: producer.produce(target.topic, target.partition, batch), done=done
        )
    return [{"records": each} for each in counts]
