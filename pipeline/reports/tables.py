"""The tables that the reports ask, beside those of the audits (`pipeline.audits.tables`).

`logs` has each partition that is wanted once, by its longest replica; `segments`, `records`, `keys`, `sampled`,
`readers`, `ends` and `lag_windows` are made by the queries in `views/`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from pipeline.audits.tables import Tables
from pipeline.rendering import plots, queries
from pipeline.rendering.queries import Question
from pipeline.reports.json_shape import LEAVES, json_paths
from pipeline.reports.registry import PACKAGE
from pipeline.transfer.selection import Choice

LOG_VIEWS: Final = ("produced", "transactions", "committed")
JOURNAL_VIEWS: Final = ("calls", "topic_names", "produces", "fetches", "commits", "group_clients")
"""Of the audits' views, those that reports ask."""
_MILLION: Final = 1_000_000
_OF_RECORDS: Final = ("keys", "hot-keys")


@dataclass(frozen=True, slots=True)
class Asked:
    """Options of the command line. Times in milliseconds since 1970; None: as the topics have it."""

    topics: tuple[str, ...] = ()
    now_ms: int = 0
    retention_ms: int | None = None
    retention_bytes: int | None = None
    top: int = 20
    values: int = 100_000
    """So many records are looked into, about."""


class ReportTables:
    """The tables of a data directory and a journal. `register` makes them; `forget` gives memory back."""

    def __init__(self, spark: SparkSession, path: str, journal: str | None, asked: Asked) -> None:
        """Raises FileNotFoundError: there is no such directory, nothing in it, or nothing that is wanted."""
        self.spark = spark
        self.path = path
        self.asked = asked
        self._tables = Tables(spark, path, journal)
        self._choice = Choice(topics=asked.topics)
        self.topics = self._wanted(each.topic for each in self._tables.files)
        if not self.topics:
            there = ", ".join(sorted({each.topic for each in self._tables.files})[:10])
            raise FileNotFoundError(f"{path} has no topic that is wanted; it has {there}: use --topic NAME")
        self.arguments: dict[str, Any] = {
            "now_ms": asked.now_ms,
            "retention_ms": asked.retention_ms,
            "retention_bytes": asked.retention_bytes,
            "top": asked.top,
        }

    def register(self, wanted: Iterable[Question]) -> None:
        """Make what these reports ask."""
        names = {each.name for each in wanted}
        needs = {need for each in wanted for need in each.needs}
        self._tables.register(log_views=LOG_VIEWS, journal_views=JOURNAL_VIEWS if "journal" in needs else ())
        self._names("wanted_topics", self.topics)
        for name in ("settings", "logs", "segments"):
            self._view(name, settled=True)
        if "records" in needs:
            self._records()
            if names & set(_OF_RECORDS):
                self._view("keys")
                self.spark.catalog.cacheTable("keys")
            self._sample()
        if "journal" in needs:
            for name in ("readers", "ends"):
                self._view(name)
            readers = self.spark.sql("SELECT DISTINCT topic FROM readers").toArrow().column("topic").to_pylist()
            self._names("wanted_names", self._wanted(readers))
            self.arguments["window_ms"] = self._window_ms()
            self._view("lag_windows", settled=True)

    def ask(self, question: Question) -> DataFrame:
        """A report's rows."""
        return self.spark.sql(question.sql, args=_named(self.arguments, question.sql))

    def forget(self) -> None:
        """Drop what was kept."""
        if self.spark.catalog.tableExists("keys"):
            self.spark.catalog.uncacheTable("keys")
        self._tables.forget()

    def _view(self, name: str, *, settled: bool = False) -> None:
        text = _views()[name]
        frame = self.spark.sql(text, args=_named(self.arguments, text))
        (frame.localCheckpoint() if settled else frame).createOrReplaceTempView(name)

    def _wanted(self, topics: Iterable[str]) -> list[str]:
        return sorted({topic for topic in topics if self._choice.wants(topic)})

    def _names(self, view: str, topics: Iterable[str]) -> None:
        self.spark.createDataFrame([(topic,) for topic in topics], "topic string").createOrReplaceTempView(view)

    def _records(self) -> None:
        """Each partition once: the data source takes the longest replica by itself."""
        options = {
            "topics": ",".join(self.topics),
            "columns": "timestamp_ms,aborted,batch_base_offset",
            "mode": "skip",
        }
        frame = self.spark.read.format("kafka_segments").options(**options).load(self.path)
        frame.createOrReplaceTempView("records")

    def _sample(self) -> None:
        total = self.spark.sql("SELECT coalesce(sum(records), 0) AS records FROM segments").toArrow().to_pylist()
        share = self.asked.values / max(total[0]["records"], 1)
        self.arguments["sample_ppm"] = min(_MILLION, max(1, round(share * _MILLION)))
        self.spark.udf.register("json_paths", json_paths, LEAVES)
        self._view("sampled")

    def _window_ms(self) -> int:
        """A round length of which sixty cover the journal."""
        span = self.spark.sql("SELECT min(ts_us) AS low, max(ts_us) AS high FROM calls").toArrow().to_pylist()[0]
        return plots.window_ms(((span["high"] or 0) - (span["low"] or 0)) // 1000)


def _views() -> Mapping[str, str]:
    return queries.read_all(PACKAGE, "views")


def _named(arguments: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Those of the arguments that a query names."""
    return {name: value for name, value in arguments.items() if f":{name}" in text}
