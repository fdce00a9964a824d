"""Makes the tables of the reports on Spark, beside those of the audits (`pipeline.audits.tables`).

`logs` has the longest replica of each selected partition; `segments`, `records`, `keys`, `sampled`, `readers`, `ends`
and `lag_windows` are made by the queries in `views/`.
"""

from collections.abc import Iterable
from typing import Any

from pyspark.sql import SparkSession

from pipeline.audits.tables import Tables
from pipeline.rendering.queries import Question
from pipeline.reports import asking
from pipeline.reports.asking import JOURNAL_VIEWS, LOG_VIEWS, Asked
from pipeline.reports.json_shape import LEAVES, json_paths, schema_number, shown_bytes, value_kind


class ReportTables:
    """The tables of a data directory and a journal. `prepare` makes them, `forget` releases their memory."""

    def __init__(self, spark: SparkSession, path: str, journal: str | None, asked: Asked) -> None:
        """Open the data. Raises FileNotFoundError: no such directory, or nothing in it that is selected."""
        self.spark = spark
        self.path = path
        self.asked = asked
        self._tables = Tables(spark, path, journal)
        self.topics = asking.wanted_topics(asked, path, (each.topic for each in self._tables.files))
        self.arguments = asking.arguments_of(asked)

    def prepare(self, wanted: Iterable[Question]) -> None:
        """Make the tables of these reports."""
        names = {each.name for each in wanted}
        needs = {need for each in wanted for need in each.needs}
        self._tables.register(log_views=LOG_VIEWS, journal_views=JOURNAL_VIEWS if "journal" in needs else ())
        self._names("wanted_topics", self.topics)
        for name in ("settings", "logs", "segments"):
            self._view(name, settled=True)
        if "records" in needs:
            self._records()
            if names & set(asking.OF_RECORDS):
                self._view("keys")
                self.spark.catalog.cacheTable("keys")
            self._sample()
        if "journal" in needs:
            for name in ("readers", "ends"):
                self._view(name)
            readers = self.spark.sql("SELECT DISTINCT topic FROM readers").toArrow().column("topic").to_pylist()
            self._names("wanted_names", asking.wanted_of(self.asked, readers))
            span = self.spark.sql("SELECT min(ts_us) AS low, max(ts_us) AS high FROM calls").toArrow().to_pylist()[0]
            self.arguments["window_ms"] = asking.window_ms(span["low"], span["high"])
            self._view("lag_windows", settled=True)

    def ask(self, sql: str, most: int) -> tuple[list[dict[str, Any]], int, list[str]]:
        """Return the first rows of a query, the number of rows, and the columns."""
        frame = self.spark.sql(sql, args=asking.named(self.arguments, sql))
        found = frame.limit(most + 1).toArrow().to_pylist()
        count = len(found) if len(found) <= most else frame.count()
        return found[:most], count, list(frame.columns)

    def forget(self) -> None:
        """Release everything."""
        if self.spark.catalog.tableExists("keys"):
            self.spark.catalog.uncacheTable("keys")
        self._tables.forget()

    def _view(self, name: str, *, settled: bool = False) -> None:
        text = asking.views()[name]
        frame = self.spark.sql(text, args=asking.named(self.arguments, text))
        (frame.localCheckpoint() if settled else frame).createOrReplaceTempView(name)

    def _names(self, view: str, topics: Iterable[str]) -> None:
        self.spark.createDataFrame([(topic,) for topic in topics], "topic string").createOrReplaceTempView(view)

    def _records(self) -> None:
        """Return the records; the data source itself chooses the longest replica of each partition."""
        options = {
            "topics": ",".join(self.topics),
            "columns": "timestamp_ms,aborted,batch_base_offset",
            "mode": "skip",
        }
        frame = self.spark.read.format("kafka_segments").options(**options).load(self.path)
        frame.createOrReplaceTempView("records")
        for name, call in (("value_kind", value_kind), ("schema_number", schema_number), ("shown_bytes", shown_bytes)):
            self.spark.udf.register(name, call, "string")
        self.spark.udf.register("json_paths", json_paths, LEAVES)

    def _sample(self) -> None:
        total = self.spark.sql("SELECT coalesce(sum(records), 0) AS records FROM segments").toArrow().to_pylist()
        self.arguments["sample_ppm"] = asking.sample_ppm(self.asked, total[0]["records"])
        self._view("sampled")
