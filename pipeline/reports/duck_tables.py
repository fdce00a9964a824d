"""Makes the tables of the reports in DuckDB, beside those of the audits (`pipeline.duck.tables`).

`logs` has the longest replica of each selected partition; `segments`, `keys`, `sampled`, `readers`, `ends` and
`lag_windows` are made by the queries in `views/`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from pipeline.audits.registry import checks
from pipeline.client_history import TABLES as HISTORY_TABLES
from pipeline.duck.engine import DuckEngine
from pipeline.duck.reader import Reader
from pipeline.duck.tables import DuckTables, register_journal
from pipeline.reading import read_segments
from pipeline.rendering.queries import Question
from pipeline.reports import asking, records
from pipeline.reports.asking import JOURNAL_VIEWS, Selection
from pipeline.reports.json_shape import STRUCTS, json_paths, schema_number, shown_bytes, value_kind

_LOSSES: Final = ("offset-hole", "high-watermark-beyond-end", "sequence-gap", "history-absent")
_ABSENT: Final = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("count", pa.int64()),
        pa.field("client_id", pa.string()),
    ]
)
"""Columns that are used of the check `acknowledged-absent`."""
_KEYS: Final = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("first_offset", pa.int64()),
        pa.field("last_offset", pa.int64()),
        pa.field("still_in", pa.list_(pa.string())),
        pa.field("keys", pa.list_(pa.string())),
    ]
)
_KEYS_KEPT, _RANGES_WITH_KEYS = 20, 100  # arbitrary: the default of --top, and what memory bears
_FIELDS: Final = ("path", "types", "is_null", "example")


class DuckReportTables(DuckTables):
    """The tables of a data directory and a journal. `prepare` makes them, `forget` releases their memory."""

    def __init__(
        self,
        path: str,
        journal: str | None,
        selection: Selection,
        reader: Reader | None = None,
        histories: Mapping[str, list[dict[str, Any]]] | None = None,
    ) -> None:
        """Open the data; ``histories``: rows of `pipeline.client_history.read`.

        Raises FileNotFoundError: no such directory, or nothing in it that is selected.
        """
        super().__init__(path, journal, reader)
        self._histories = histories or {name: [] for name in HISTORY_TABLES}
        self.selection = selection
        self.topics = asking.wanted_topics(selection, path, (each.topic for each in self.files))
        self.arguments = asking.arguments_of(selection)

    def prepare(self, wanted: Iterable[Question]) -> None:
        """Make the tables of these reports."""
        names = {each.name for each in wanted}
        needs = {need for each in wanted for need in each.needs}
        engine = self.engine
        self._read_logs()
        self._log_views()
        _names(engine, "wanted_topics", self.topics)
        for name in ("settings", "logs", "segments"):
            self._view(name)
        if "records" in needs:
            (total,) = engine.plain(
                "SELECT CAST(coalesce(sum(records), 0) AS BIGINT) AS records FROM segments"
            ).to_pylist()
            sample_ppm = asking.sample_ppm(self.selection, total["records"])
            pieces = records.pieces_of(self.path, self.topics, sample_ppm)
            self._reader.read(engine, records.SCHEMAS, records.read, pieces)
            self._functions()
            if names & set(asking.OF_RECORDS):
                self._view("keys")
            self._view("sampled")
        with_journal = self.journal_path if "journal" in needs or "lost" in names else None
        if with_journal is not None:
            register_journal(engine, with_journal, JOURNAL_VIEWS, self._reader)
        if "lost" in names:
            self._lost(with_journal=with_journal is not None)
        if "journal" in needs and with_journal is not None:
            for name in ("readers", "ends"):
                self._view(name)
            readers = engine.plain("SELECT DISTINCT topic FROM readers").column("topic").to_pylist()
            _names(engine, "wanted_names", asking.wanted_of(self.selection, readers))
            (span,) = engine.plain("SELECT min(ts_us) AS low, max(ts_us) AS high FROM calls").to_pylist()
            self.arguments["window_ms"] = asking.window_ms(span["low"], span["high"])
            self._view("lag_windows")

    def ask(self, sql: str, most: int) -> tuple[list[dict[str, Any]], int, list[str]]:
        """Return the first rows of a query, the number of rows, and the columns."""
        return self.engine.answer(sql, asking.named(self.arguments, sql), most)

    def _view(self, name: str) -> None:
        text = asking.views()[name]
        self.engine.view(name, text, asking.named(self.arguments, text))

    def _lost(self, *, with_journal: bool) -> None:
        """Make the tables of what is lost, from the findings of the audit's checks."""
        engine = self.engine
        engine.table("acknowledged_absent", _ABSENT.empty_table())
        self.add(HISTORY_TABLES, self._histories)
        for check in (*_LOSSES, *(["acknowledged-absent"] if with_journal else [])):
            engine.view(check.replace("-", "_"), checks()[check].sql)
        self._view("lost_ranges")
        self._view("still_there")
        self._view("lost_ids")
        rows = engine.plain("SELECT * FROM still_there").to_pylist()
        for number, row in enumerate(rows):
            row["keys"] = _keys_of(row) if number < _RANGES_WITH_KEYS else None
        engine.table("lost_keys", pa.Table.from_pylist(rows, _KEYS))

    def _functions(self) -> None:
        """Register the functions of values."""
        for name, call in (("value_kind", value_kind), ("schema_number", schema_number), ("shown_bytes", shown_bytes)):
            self.engine.function(name, call, ["BLOB"], "VARCHAR")
        self.engine.function("json_paths", _paths, ["BLOB"], STRUCTS)


def _keys_of(row: Mapping[str, Any]) -> list[str]:
    """Return the keys of the first records in a range of offsets, from a replica that has it."""
    offsets = row["first_offset"], min(row["last_offset"], row["first_offset"] + _KEYS_KEPT - 1) + 1
    keys: list[str] = []
    for rows in read_segments(
        row["still_in"][0], columns=("partition", "key"), topics=[row["topic"]], offsets=offsets, mode="skip"
    ):
        keys += (shown_bytes(each["key"]) or "-" for each in rows.to_pylist() if each["partition"] == row["partition"])
    return keys


def _paths(value: bytes | None) -> list[dict[str, Any]]:
    return [dict(zip(_FIELDS, leaf, strict=True)) for leaf in json_paths(value)]


def _names(engine: DuckEngine, name: str, topics: Sequence[str]) -> None:
    engine.table(name, pa.table({"topic": pa.array(topics, pa.string())}))
