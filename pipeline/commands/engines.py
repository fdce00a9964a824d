"""Chooses who reads the files of a command: this process, or Spark."""

import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pipeline.amounts import Amount, amount_of
from pipeline.audits.engine import EngineError
from pipeline.commands.progress import Progress
from pipeline.locations import files_below, is_file, locate, size_of
from pipeline.rendering.text import last_line

if TYPE_CHECKING:
    from pipeline.duck.reader import Reader

_SMALL_MB: Final = 256
"""Below this size no line is printed, and no file is opened to estimate the time: this process is faster."""
_MB: Final = 1 << 20
_DATA: Final = (".log", ".jsonl", ".open", ".gz", ".parquet")


class Rates(NamedTuple):
    """Processor time of one core for bytes of logs, batches and records, and of Spark's start, in seconds.

    Estimates of ours, of which only the ratio decides.
    """

    per_gb_s: float
    per_batch_s: float
    per_record_s: float
    start_s: float


BATCHES: Final = Rates(per_gb_s=0.5, per_batch_s=1.8e-6, per_record_s=0, start_s=6)
RECORDS: Final = Rates(per_gb_s=0.5, per_batch_s=3e-6, per_record_s=4e-7, start_s=6)
"""Decoding, without the records or with them. While Spark starts its first Python workers, this process decodes."""
EXPORTED: Final = Rates(per_gb_s=1.4, per_batch_s=2.8e-6, per_record_s=1.3e-6, start_s=10)
LOADED: Final = Rates(per_gb_s=0.5, per_batch_s=0, per_record_s=9e-7, start_s=10)
"""Reading logs and writing Parquet files, and the other way round. A session with Spark's SQL takes longer to start."""
_PER_JOURNAL_GB_S: Final = 25.0
"""As in `Rates`."""
_FREE_GB, _FREE_PER_CORE_GB = 2.5, 0.5
"""Memory of a local Spark session: ours, for its Java and each Python worker, with some to spare."""


def is_small(arguments: Mapping[str, Any], paths: Sequence[str]) -> bool:
    """Return whether the files below the paths are within the command line's limit."""
    if not arguments["master"].startswith("local"):
        return False
    most = arguments["spark_above"]
    limit = (_SMALL_MB if most is None else int(most)) * _MB
    return sum(_size(path) for path in paths) <= limit if limit else False


def _size(path: str) -> int:
    location = locate(path)
    if is_file(location):
        return size_of(location)
    return sum(each.size for each in files_below(location) if each.location.path.endswith(_DATA))


def seconds_of(amount: Amount, rates: Rates) -> float:
    """Return the time that one core takes for this."""
    seconds = amount.log_bytes / 1e9 * rates.per_gb_s + amount.batches * rates.per_batch_s
    return seconds + amount.records * rates.per_record_s + amount.journal_bytes / 1e9 * _PER_JOURNAL_GB_S


def suits_spark(seconds: float, cores: int, free_gb: float, start_s: float) -> bool:
    """Return whether a local Spark session has the memory, and is done in less than two thirds of the time."""
    # Two thirds, as the estimate is rough and Spark needs far more memory.
    return free_gb >= _FREE_GB + _FREE_PER_CORE_GB * cores and start_s + seconds / cores < seconds * 2 / 3


def is_left_to_spark(
    arguments: Mapping[str, Any], paths: Sequence[str], progress: Progress, rates: Rates, amount: Amount | None = None
) -> bool:
    """Return whether Spark does this, and print the reason unless it is small; `amount`: what is there, if known."""
    if not arguments["master"].startswith("local"):
        return True
    if arguments["spark_above"] is not None:
        return not is_small(arguments, paths)
    if is_small(arguments, paths):
        return False
    amount, cores, free_gb = amount or amount_of(paths), cores_of(arguments["master"]), free_bytes() / 1e9
    seconds = seconds_of(amount, rates)
    is_better = suits_spark(seconds, cores, free_gb, rates.start_s)
    chosen = is_better and importlib.util.find_spec("pyspark") is not None
    here, there = ("this process", "--spark-above 1000000"), ("Spark", "--spark-above 0")
    (who, _), other = (there, here) if chosen else (here, there)
    batches = f"{amount.batches:,} batches with " if amount.batches else ""
    data = f"about {batches}{amount.records:,} records in {amount.total_bytes / 1e9:.1f} GB"
    machine = f"{seconds:.0f} s of one core; {cores} cores and {free_gb:.0f} GB of memory are free"
    progress.note(f"{data}: {who} reads them ({machine}; to choose {': '.join(other)})")
    return chosen


def cores_of(master: str) -> int:
    """Return the number of cores of a local master: `local`, `local[4]`, `local[*]`."""
    named = master.removeprefix("local").strip("[]").split(",")[0]
    return int(named) if named.isdigit() else (os.cpu_count() or 1) if named == "*" else 1


def free_bytes() -> int:
    """Return the memory that processes can get without swapping."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        # In units of 1024 bytes.
        return next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable")) * 1024
    except (OSError, StopIteration):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def needs_duckdb() -> None:
    """Raise EngineError if DuckDB is not installed."""
    if importlib.util.find_spec("duckdb") is None:
        raise EngineError("it runs its queries in DuckDB: pip install 'understudy-kafka[duckdb]'")


def reader_for(
    arguments: Mapping[str, Any], paths: Sequence[str], progress: Progress, *, records: bool = False
) -> "Reader":
    """Return who decodes these files, with all records or without: this process or a Spark session."""
    if not is_left_to_spark(arguments, paths, progress, RECORDS if records else BATCHES):
        from pipeline.duck.reader import LocalReader  # noqa: PLC0415 - it brings DuckDB

        return LocalReader()
    prepare = arguments["enter_spark"](sources=False)
    from pipeline.session import context  # noqa: PLC0415 - it brings Spark
    from pipeline.spark_reader import SparkReader  # noqa: PLC0415 - as above

    progress.show("starting Spark ...")
    is_here = arguments["master"].startswith("local")
    return SparkReader(lambda: context(prepare, arguments["master"]), meantime=is_here)


def session_for(
    arguments: Mapping[str, Any], path: str, progress: Progress, rates: Rates, amount: Amount | None = None, *,
    needs_sql: bool,
) -> Any:  # fmt: skip
    """Return a Spark session to export or load these files; None if this process does it, which has no SQL."""
    if not needs_sql and not is_left_to_spark(arguments, [path], progress, rates, amount):
        return None
    register = arguments["enter_spark"](sources=True)
    from pipeline.session import session  # noqa: PLC0415 - it brings Spark

    progress.show("starting Spark ...")
    return session(register, arguments["master"])


@contextmanager
def engine_errors() -> Iterator[None]:
    """Raise Spark's errors as EngineError, without importing Spark."""
    try:
        yield
    except Exception as error:
        errors = sys.modules.get("pyspark.errors")
        if errors is None or not isinstance(error, errors.PySparkException):
            raise
        raise EngineError(last_line(error)) from error
