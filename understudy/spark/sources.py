"""Spark data sources, implemented in `pipeline`.

Spark creates these classes in the user's driver and in workers that run the user's code too. So they hold plain values
only, and import the server's packages only for the duration of a call.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from understudy import server_path

OPERATORS: dict[type[Filter], str] = {
    EqualTo: "=",
    EqualNullSafe: "=",
    In: "in",
    LessThan: "<",
    LessThanOrEqual: "<=",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
}


def _read(task: bytes) -> Iterator[Any]:
    """Yield the Arrow batches of a task."""
    with server_path.entered():
        rows = server_path.borrow("pipeline.sources").read(task)
    yield from rows


class Reader(DataSourceReader):
    """Reads a source once."""

    def __init__(self, source: str, options: Mapping[str, str], names: Sequence[str]) -> None:
        self._source, self._options, self._names = source, dict(options), list(names)
        self._conditions: list[tuple[str, str, Any]] = []

    def partitions(self) -> Sequence[InputPartition]:
        """Return one partition per task."""
        with server_path.entered():
            tasks = server_path.borrow("pipeline.sources").tasks(
                self._source, self._options, self._names, self._conditions
            )
        return [InputPartition(task) for task in tasks] or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the rows of a task, as Arrow batches."""
        if partition.value is not None:
            yield from _read(partition.value)


class FilteringReader(Reader):
    """Reads a source once, with filters pushed down; only with the option `pushFilters`.

    Spark (4.1 to 4.3) reuses the plan of a Python source for the filters of one query in the next query on the same
    DataFrame or view, even if that one pushes no filters: it would miss rows.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Keep filters that reduce reading; Spark applies all of them again."""
        for each in filters:
            operator = OPERATORS.get(type(each))
            if operator is not None and len(each.attribute) == 1:  # type: ignore[attr-defined] # these have both
                self._conditions.append((each.attribute[0], operator, each.value))  # type: ignore[attr-defined]
            yield each


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows a source."""

    def __init__(self, source: str, options: Mapping[str, str], names: Sequence[str]) -> None:
        self._source, self._options, self._names = source, dict(options), list(names)
        self._target: dict[str, Any] | None = None

    def _stream(self) -> Any:
        return server_path.borrow("pipeline.streams").open_stream(self._source, self._options)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return the start position of a stream without a checkpoint."""
        with server_path.entered():
            place: dict[str, Any] = self._stream().first()
        return place

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Remember the current end of the source."""
        with server_path.entered():
            self._target = self._stream().last()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return the limit that the options set."""
        options = {name.lower(): value for name, value in self._options.items()}
        if most := options.get("maxoffsetspertrigger"):
            return ReadMaxRows(int(most))
        if most := options.get("maxbytespertrigger"):
            return ReadMaxBytes(int(most))
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return the end position of the next batch."""
        with server_path.entered():
            limit_class = server_path.borrow("pipeline.streams").Limit
            bound = limit_class("all")
            if isinstance(limit, ReadMaxRows):
                bound = limit_class("rows", limit.max_rows)
            elif isinstance(limit, ReadMaxBytes):
                bound = limit_class("bytes", limit.max_bytes)
            elif isinstance(limit, ReadMaxFiles):
                bound = limit_class("files", limit.max_files)
            place: dict[str, Any] = self._stream().next(start, bound, self._target)
        return place

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return the last readable position, for the progress report."""
        with server_path.entered():
            place: dict[str, Any] = self._stream().last()
        return place

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the tasks between two positions."""
        with server_path.entered():
            tasks = self._stream().tasks(start, end, self._names)
        return [InputPartition(task) for task in tasks] or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the rows of a task, as Arrow batches."""
        if partition.value is not None:
            yield from _read(partition.value)


class _Source(DataSource):
    """Base class of the four data sources."""

    def schema(self) -> str:
        """Return the columns for the options."""
        with server_path.entered():
            columns: str = server_path.borrow("pipeline.sources").columns(self.name(), dict(self.options))
        return columns

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader for `spark.read`."""
        options = {name.lower(): value.lower() for name, value in self.options.items()}
        kind = FilteringReader if options.get("pushfilters") == "true" else Reader
        return kind(self.name(), dict(self.options), schema.names)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return the reader for `spark.readStream`."""
        return StreamReader(self.name(), dict(self.options), schema.names)


class KafkaSegments(_Source):
    """One row per record, in the columns of Spark's own Kafka source."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format()`."""
        return "kafka_segments"


class KafkaBatches(_Source):
    """One row per record batch."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format()`."""
        return "kafka_batches"


class KafkaState(_Source):
    """One row per record of a coordinator."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format()`."""
        return "kafka_state"


class WireJournal(_Source):
    """One row per request and response."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format()`."""
        return "wire_journal"


SOURCES: tuple[type[DataSource], ...] = (KafkaSegments, KafkaBatches, KafkaState, WireJournal)
