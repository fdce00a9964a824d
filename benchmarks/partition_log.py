"""Rows of the partition log alone, without sockets: appends, reads, their slope over the log's size, and recovery.

Appends run every check of a Produce request's batch. Slopes are measured in the process's own time, without other
processes.
"""

import shutil
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from benchmarks.row import Figure, Scale, StorageRow, Values
from protocol.records.records import Record, build_batch
from storage.checkpoints import CLEAN_SHUTDOWN, RECOVERY_POINT
from storage.files import DiskFiles, Files, MemoryFiles
from storage.log.config import LogConfig
from storage.log.context import LogContext
from storage.log.partition_log import PartitionLog
from storage.log_dir import LogDir

NOW_MS = 1_700_000_000_000
CONFIG = LogConfig(max_message_bytes=1 << 30)
_FIRST_SIZE = 100  # records of the smallest log in the slopes
_CHUNK, _CHUNKS = 50, 21  # calls timed together for a slope, and how often
_SLOPE_CONFIG = replace(CONFIG, segment_bytes=16 << 20)  # so that the largest log has many segments


def open_dir(files: Files) -> LogDir:
    """Yield a data directory with all its logs."""
    opened = LogDir.open(LogContext(files), node_id=1, now_ms=NOW_MS)
    opened.load_all(lambda _: CONFIG, now_ms=NOW_MS)
    return opened


@contextmanager
def _a_log(target: str, config: LogConfig = CONFIG) -> Iterator[PartitionLog]:
    root = Path(tempfile.mkdtemp(prefix="bench-log-"))
    opened = open_dir(MemoryFiles() if target == "memory" else DiskFiles(root))
    try:
        yield opened.create_log("bench", 0, config=config, now_ms=NOW_MS)
    finally:
        opened.close()
        shutil.rmtree(root)


def a_batch(records: int, value_size: int) -> bytes:
    """Build a batch as a producer does, with records of some milliseconds."""
    value = bytes(index % 251 for index in range(value_size))
    return bytes(build_batch([Record(index, NOW_MS + index // 500, None, value) for index in range(records)]))


def _append(log: PartitionLog, template: bytes, count: int) -> float:
    """Return the seconds per append, without building the batches."""
    batches = [bytearray(template) for _ in range(count)]
    begun = time.perf_counter()
    for batch in batches:
        log.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS)
    return (time.perf_counter() - begun) / count


def _appends(target: str, scale: Scale, _largest: int) -> Values:
    """Return batches per second, the median of ten parts of each run."""
    rates = {}
    for records, count in ((1, 100_000), (100, 10_000), (10_000, 100)):
        template, each = a_batch(records, 100), scale.of(count, 50) // 10
        with _a_log(target) as log:
            _append(log, template, each)
            seconds = statistics.median(_append(log, template, each) for _ in range(10))
            if log.log_end_offset != records * each * 11:
                raise AssertionError(f"{log.log_end_offset} records in the log, {records * each * 11} appended")
        rates[f"append_{records}"] = 1 / seconds
    return rates


def _append_us(log: PartitionLog, template: bytes) -> float:
    """Return microseconds of processor time per append."""
    batches = [bytearray(template) for _ in range(_CHUNK)]
    begun = time.process_time()
    for batch in batches:
        log.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS)
    return (time.process_time() - begun) / _CHUNK * 1e6


def _fetch_us(log: PartitionLog, size: int, number: int) -> float:
    """Return microseconds of processor time per read, at offsets spread over the first `size` records."""
    offsets = [(number * _CHUNK + index) * 7919 % size for index in range(_CHUNK)]
    begun = time.process_time()
    for offset in offsets:
        log.reader.read(offset, 1, bound=size, min_one=True)
    return (time.process_time() - begun) / _CHUNK * 1e6


def _filled(log: PartitionLog, size: int) -> PartitionLog:
    """Fill a log with `size` records, a hundred per batch, and check that reads find them."""
    template = a_batch(100, 10)
    while log.log_end_offset < size:
        _append(log, template, min((size - log.log_end_offset) // 100, 1000))
    log.advance_high_watermark(size)
    for offset in (0, size - 1, size // 2):
        begins = int.from_bytes(log.reader.read(offset, 1, bound=size, min_one=True).buffers[0][:8])
        if begins != offset // 100 * 100:
            raise AssertionError(f"a read at {offset} began at {begins}")
    return log


def _slopes(target: str, scale: Scale, largest: int) -> Values:
    """Return the cost of an append and of a read at logs of 10^2, 10^3, ... records, and their ratios."""
    largest = max(scale.of(largest), _FIRST_SIZE * 10)
    sizes = [_FIRST_SIZE]
    while sizes[-1] * 10 <= largest:
        sizes.append(sizes[-1] * 10)
    template = a_batch(1, 100)
    costs: dict[str, list[float]] = defaultdict(list)
    with ExitStack() as stack:
        logs = {size: _filled(stack.enter_context(_a_log(target, _SLOPE_CONFIG)), size) for size in sizes}
        for number in range(_CHUNKS):
            for size, log in logs.items():
                costs[f"append_at_{size}"].append(_append_us(log, template))
                costs[f"fetch_at_{size}"].append(_fetch_us(log, size, number))
    medians = {name: statistics.median(values) for name, values in costs.items()}
    for name in ("append", "fetch"):
        medians[f"{name}_slope"] = medians[f"{name}_at_{sizes[-1]}"] / medians[f"{name}_at_{sizes[0]}"]
    return medians


def _recovery(target: str, scale: Scale, _largest: int) -> Values:
    """Return the seconds to open a log of 1 kB records, a hundred per batch, after a clean stop and after a kill."""
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
        opened.close()
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
    recovered = opened.logs["recovery", 0].log_end_offset
    opened.close()
    if recovered != end:
        raise AssertionError(f"{recovered} of {end} records recovered")
    return seconds


def _decades(name: str, title: str, largest: int) -> Iterator[Figure]:
    size = _FIRST_SIZE
    while size <= largest:
        yield Figure(f"{name}_at_{size}", f"{title} at {size:,} records", "us of a processor", "lower")
        size *= 10
    yield Figure(f"{name}_slope", f"{title}: largest log against smallest", "x", "lower")


def rows(largest: int) -> tuple[StorageRow, ...]:
    """Return the rows, with slopes up to `largest` records."""
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
