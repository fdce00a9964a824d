"""Makes the reports' tables on DuckDB, with the same queries as on Spark."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import pyarrow as pa

from pipeline.audits.registry import view
from pipeline.duck.engine import DuckEngine
from pipeline.duck.reader import Reader
from pipeline.duck.tables import DuckTables, register_journal
from pipeline.query import pick
from pipeline.reading import read_segments
from pipeline.rendering.queries import Question
from pipeline.reports import asking
from pipeline.reports.asking import JOURNAL_VIEWS, LOG_VIEWS, Asked
from pipeline.reports.json_shape import STRUCTS, json_paths, schema_number, shown_bytes, value_kind
from pipeline.schemas import EXTRA, KAFKA

_RECORDS: Final = ("topic", "partition", "offset", "key", "value", "timestamp_ms", "aborted", "batch_base_offset")
_FIELDS: Final = ("path", "types", "is_null", "example")


class DuckReportTables(DuckTables):
    """The tables of a data directory and a journal. `prepare` makes them, `forget` releases their memory."""

    def __init__(self, path: str, journal: str | None, asked: Asked, reader: Reader | None = None) -> None:
        """Open the data. Raises FileNotFoundError: no such directory, or nothing in it that is selected."""
        super().__init__(path, journal, reader)
        self.asked = asked
        self.topics = asking.wanted_topics(asked, path, (each.topic for each in self.files))
        self.arguments = asking.arguments_of(asked)

    def prepare(self, wanted: Iterable[Question]) -> None:
        """Make the tables of these reports."""
        names = {each.name for each in wanted}
        needs = {need for each in wanted for need in each.needs}
        engine = self.engine
        self._read_logs()
        for name in LOG_VIEWS:
            engine.view(name, view(name), kept=name != "produced")
        _names(engine, "wanted_topics", self.topics)
        for name in ("settings", "logs", "segments"):
            self._view(name)
        if "records" in needs:
            self._records_of(self.topics)
            if names & set(asking.OF_RECORDS):
                self._view("keys")
            (total,) = engine.plain(
                "SELECT CAST(coalesce(sum(records), 0) AS BIGINT) AS records FROM segments"
            ).to_pylist()
            self.arguments["sample_ppm"] = asking.sample_ppm(self.asked, total["records"])
            self._view("sampled")
        if "journal" in needs and self.journal_path is not None:
            register_journal(engine, self.journal_path, JOURNAL_VIEWS, self._reader)
            for name in ("readers", "ends"):
                self._view(name)
            readers = engine.plain("SELECT DISTINCT topic FROM readers").column("topic").to_pylist()
            _names(engine, "wanted_names", asking.wanted_of(self.asked, readers))
            (span,) = engine.plain("SELECT min(ts_us) AS low, max(ts_us) AS high FROM calls").to_pylist()
            self.arguments["window_ms"] = asking.window_ms(span["low"], span["high"])
            self._view("lag_windows")

    def ask(self, sql: str, most: int) -> tuple[list[dict[str, Any]], int, list[str]]:
        """Return the first rows of a query, the number of rows, and the columns."""
        return self.engine.answer(sql, asking.named(self.arguments, sql), most)

    def _view(self, name: str) -> None:
        text = asking.views()[name]
        self.engine.view(name, text, asking.named(self.arguments, text))

    def _records_of(self, topics: Sequence[str]) -> None:
        """Return the records of each partition from its longest replica, like the reader."""
        schema = pick(pa.schema([*KAFKA, *EXTRA]), _RECORDS)
        rows = read_segments(self.path, columns=_RECORDS, topics=topics, mode="skip")
        self.engine.table("records", pa.Table.from_batches((each.select(_RECORDS) for each in rows), schema))
        for name, call in (("value_kind", value_kind), ("schema_number", schema_number), ("shown_bytes", shown_bytes)):
            self.engine.function(name, call, ["BLOB"], "VARCHAR")
        self.engine.function("json_paths", _paths, ["BLOB"], STRUCTS)


def _paths(value: bytes | None) -> list[dict[str, Any]]:
    return [dict(zip(_FIELDS, leaf, strict=True)) for leaf in json_paths(value)]


def _names(engine: DuckEngine, name: str, topics: Sequence[str]) -> None:
    engine.table(name, pa.table({"topic": pa.array(topics, pa.string())}))
