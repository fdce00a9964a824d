"""Rows of the partition log alone, without sockets: appends, reads, their slope over the log's size, and recovery.

Appends go through every check that a Produce request's batch meets.
"""

import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.row import Figure, Scale, StorageRow, Values
from protocol.records.records import Record, build_batch
from storage.checkpoints import CLEAN_SHUTDOWN, RECOVERY_POINT
from storage.config import LogConfig
from storage.environment import LogEnvironment
from storage.files import DiskFiles, Files, MemoryFiles
from storage.log_dir import LogDir
from storage.partition_log import PartitionLog

NOW_MS = 1_700_000_000_000
CONFIG = LogConfig(max_message_bytes=1 << 30)
_FIRST_SIZE = 1000  # of the smallest log that slopes begin with
_CHUNK = 250  # calls timed together, for a slope


def open_dir(files: Files) -> LogDir:
    """A data directory with all its logs."""
    opened = LogDir.open(LogEnvironment(files), node_id=1, now_ms=NOW_MS)
    opened.load_all(lambda _: CONFIG, now_ms=NOW_MS)
    return opened


@contextmanager
def _a_log(target: str) -> Iterator[PartitionLog]:
    root = Path(tempfile.mkdtemp(prefix="bench-log-"))
    opened = open_dir(MemoryFiles() if target == "memory" else DiskFiles(root))
    try:
        yield opened.create_log("bench", 0, config=CONFIG, now_ms=NOW_MS)
    finally:
        opened.close(now_ms=NOW_MS)
        shutil.rmtree(root)


def a_batch(records: int, value_size: int) -> bytes:
    """A batch as a producer makes it: the records of some milliseconds."""
    value = bytes(index % 251 for index in range(value_size))
    return bytes(build_batch([Record(index, NOW_MS + index // 500, None, value) for index in range(records)]))


def _append(log: PartitionLog, template: bytes, count: int) -> float:
    """Seconds for each of so many appends, their buffers made before."""
    batches = [bytearray(template) for _ in range(count)]
    begun = time.perf_counter()
    for batch in batches:
        log.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS)
    return (time.perf_counter() - begun) / count


def _appends(target: str, scale: Scale, _largest: int) -> Values:
    """Batches a second, the median of ten parts of each run."""
    found = {}
    for records, count in ((1, 100_000), (100, 10_000), (10_000, 100)):
        template, each = a_batch(records, 100), scale.of(count, 50) // 10
        with _a_log(target) as log:
            _append(log, template, each)
            seconds = statistics.median(_append(log, template, each) for _ in range(10))
            if log.log_end_offset != records * each * 11:
                raise AssertionError(f"{log.log_end_offset} records in the log, {records * each * 11} appended")
        found[f"append_{records}"] = 1 / seconds
    return found


def _fetch(log: PartitionLog, max_bytes: int) -> float:
    """Seconds for each read at an offset from all over the log, the median of some chunks."""
    log.advance_high_watermark(log.log_end_offset)
    end = log.log_end_offset
    offsets = [index * 7919 % end for index in range(_CHUNK * 8)]

    def chunk(number: int) -> float:
        begun = time.perf_counter()
        for offset in offsets[number * _CHUNK : (number + 1) * _CHUNK]:
            log.read(offset, max_bytes, bound=end, min_one=True)
        return (time.perf_counter() - begun) / _CHUNK

    return statistics.median(chunk(number) for number in range(8))


def _slopes(target: str, scale: Scale, largest: int) -> Values:
    """Cost of an append and of a read at logs of 10^3, 10^4, ... batches of one record, and last against first."""
    template = a_batch(1, 100)
    largest = max(scale.of(largest), _FIRST_SIZE * 10)
    found: dict[str, float] = {}
    costs: dict[str, list[float]] = {"append": [], "fetch": []}
    size = _FIRST_SIZE
    with _a_log(target) as log:
        while size <= largest:
            while (lacking := size - log.log_end_offset) > 0:
                _append(log, template, min(lacking, 10_000))
            costs["fetch"].append(_fetch(log, 1))
            costs["append"].append(statistics.median(_append(log, template, _CHUNK) for _ in range(8)))
            for name, values in costs.items():
                found[f"{name}_at_{size}"] = values[-1] * 1e6
            size *= 10
        for offset in (0, log.log_end_offset - 1, log.log_end_offset // 2):
            first = log.read(offset, 1, bound=log.log_end_offset, min_one=True).buffers[0]
            if int.from_bytes(first[:8]) != offset:
                raise AssertionError(f"a read at {offset} began elsewhere")
    return {**found, **{f"{name}_slope": values[-1] / values[0] for name, values in costs.items()}}


def _recovery(target: str, scale: Scale, _largest: int) -> Values:
    """Seconds to open a log of records of 1 kB, a hundred a batch, after a clean stop and after a kill."""
    if target == "memory":
        return {}
    count, template = scale.of(1_000_000, 10_000), a_batch(100, 1000)
    root = Path(tempfile.mkdtemp(prefix="bench-log-"))
    try:
        opened = open_dir(DiskFiles(root))
        log = opened.create_log("recovery", 0, config=CONFIG, now_ms=NOW_MS)
        for _ in range(count // 100):
            log.append_as_leader(bytearray(template), leader_epoch=0, now_ms=NOW_MS)
        end = log.log_end_offset
        opened.close(now_ms=NOW_MS)
        clean = _opening(root, end)
        for name in (CLEAN_SHUTDOWN, RECOVERY_POINT):
            (root / name).unlink()
        return {"recovery_clean": clean, "recovery_killed": _opening(root, end)}
    finally:
        shutil.rmtree(root)


def _opening(root: Path, end: int) -> float:
    begun = time.perf_counter()
    opened = open_dir(DiskFiles(root))
    seconds = time.perf_counter() - begun
    found = opened.logs["recovery", 0].log_end_offset
    opened.close(now_ms=NOW_MS)
    if found != end:
        raise AssertionError(f"{found} of {end} records recovered")
    return seconds


def _decades(name: str, title: str, largest: int) -> Iterator[Figure]:
    size = _FIRST_SIZE
    while size <= largest:
        yield Figure(f"{name}_at_{size}", f"{title} at {size:,} batches", "us", "lower")
        size *= 10
    yield Figure(f"{name}_slope", f"{title}: largest log against smallest", "x", "lower")


def rows(largest: int) -> tuple[StorageRow, ...]:
    """With slopes up to that many batches."""
    return (
        StorageRow(
            "append",
            tuple(
                Figure(f"append_{records}", f"append, {records:,} records of 100 B a batch", "batches/s")
                for records in (1, 100, 10_000)
            ),
            _appends,
        ),
        StorageRow(
            "slopes",
            (*_decades("append", "append", largest), *_decades("fetch", "fetch at an offset", largest)),
            _slopes,
        ),
        StorageRow(
            "recovery",
            (
                Figure("recovery_clean", "open 1 M records of 1 kB after a clean stop", "s", "lower"),
                Figure("recovery_killed", "open 1 M records of 1 kB after a kill", "s", "lower"),
            ),
            _recovery,
            targets=("disk",),
        ),
    )
