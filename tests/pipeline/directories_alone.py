"""Copies of a sound data directory that differ from it by one fault, each audited as a directory of its own.

What a fault leaves as it was is neither read nor asked again: a partition's files are read again where the fault is
about one of them, a view is filled and a check asked again where a table that it looks at is another. DuckDB has
planned the statements once. So an audit takes a fraction of a second, and finds what one from the beginning finds.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from pipeline.audits.registry import chosen
from pipeline.audits.sidecar_files import Tree
from pipeline.duck.dialect import in_duckdb
from pipeline.duck.engine import DuckEngine
from pipeline.duck.tables import DuckTables
from pipeline.pieces import Decode, Piece
from pipeline.splits import Split
from tests.pipeline.directory_mutations import plant, restore
from tests.pipeline.file_mutations import Fault

_NAMES: Final = re.compile(r"\w+")


class _Engine(DuckEngine):
    """Tables that are filled again where their rows are others, and which of them differ from the sound directory's."""

    def __init__(self) -> None:
        super().__init__()
        # A plan made for the rows of one directory must hold for those of another.
        self.run("SET disabled_optimizers = 'statistics_propagation'")
        self.run("SET threads = 1")
        self._sound: dict[str, pa.Table] = {}
        self._now: dict[str, pa.Table] = {}
        self._used_by: dict[str, set[str]] = {}
        self.stale: set[str] = set()
        """Tables that were filled again since `begin`."""
        self.changed: set[str] = set()
        """Tables that are not as in the sound directory."""

    def run(self, sql: str) -> Any:
        """The answer of a statement in DuckDB's SQL."""
        return self._connection.execute(sql)

    def uses(self, sql: str) -> set[str]:
        """The tables and views whose names are in a query: those that it looks at are among them."""
        return set(_NAMES.findall(sql)).intersection((*self._sound, *self._used_by))

    def begin(self) -> None:
        """Before the tables of another directory."""
        self.stale.clear()
        self.changed.clear()

    def table(self, name: str, rows: pa.Table) -> None:
        """Make a table, or fill it again."""
        if name not in self._sound:
            super().table(name, rows)
            self._sound[name] = self._now[name] = rows
            return
        if not rows.equals(self._sound[name]):
            self.changed.add(name)
        if not rows.equals(self._now[name]):
            self._connection.register("arrow_rows", rows)
            self.run(f'DELETE FROM "{name}"')  # noqa: S608 - our name
            self.run(f'INSERT INTO "{name}" SELECT * FROM arrow_rows')  # noqa: S608 - our name
            self._connection.unregister("arrow_rows")
            self._now[name] = rows
            self.stale.add(name)

    def columns(self, name: str, of: str, names: Sequence[str]) -> None:
        """As the table that the columns are of."""
        if name not in self._used_by:
            super().columns(name, of, names)
            self._used_by[name] = {of}
        self._follow(name)

    def view(self, name: str, sql: str, arguments: Mapping[str, Any] | None = None, *, kept: bool = True) -> None:  # noqa: ARG002
        """Make a table of a query, or fill it again; also of one that an audit does not keep."""
        if name not in self._used_by:
            super().view(name, sql, arguments)
            self._used_by[name] = self.uses(in_duckdb(sql))
            self.run(f'PREPARE "fill {name}" AS INSERT INTO "{name}" {in_duckdb(sql)}')
        if self._follow(name):
            self.run(f'DELETE FROM "{name}"')  # noqa: S608 - our name
            self.run(f'EXECUTE "fill {name}"')

    def _follow(self, name: str) -> bool:
        """Note what has become of a view; answers whether it has to be filled again."""
        if self._used_by[name] & self.changed:
            self.changed.add(name)
        if self._used_by[name] & self.stale:
            self.stale.add(name)
        return name in self.stale


class _Reader:
    """Decodes again only what has changed."""

    def __init__(self) -> None:
        self.touched: set[str] = set()
        """Folders in which files have changed, by their names; empty for files of the whole directory."""
        self._kept: dict[tuple[str, str, str, str], list[tuple[str, pa.RecordBatch]]] = {}

    def read(
        self, engine: DuckEngine, schemas: Mapping[str, pa.Schema], decode: Decode, pieces: Sequence[Piece]
    ) -> None:
        """As the reader of this process, piece by piece."""
        batches: dict[str, list[pa.RecordBatch]] = {name: [] for name in schemas}
        for piece in pieces:
            for name, rows in self._once(decode, piece, "".join(schemas)):
                batches[name].append(rows)
        for name, schema in schemas.items():
            engine.table(name, pa.Table.from_batches(batches[name], schema))

    def close(self) -> None:
        """Nothing to release."""

    def _once(self, decode: Decode, piece: Piece, tables: str) -> list[tuple[str, pa.RecordBatch]]:
        directory, what = piece.what
        folder = what.rpartition("/")[0] if isinstance(what, str) else f"{what.topic}-{what.partition}"
        if not self.touched.isdisjoint(("", folder)):
            return list(decode(piece.what))
        place = what.ranges[0] if isinstance(what, Split) else None
        at = what if isinstance(what, str) else "" if place is None else f"{place.segment.location} {place.start}"
        key = (tables, directory, folder, at)
        if key not in self._kept:
            self._kept[key] = list(decode(piece.what))
        return self._kept[key]


class _Tables(DuckTables):
    """The tables of a directory whose logs are read again only where they have changed."""

    def __init__(self, path: str) -> None:
        self._own = _Reader()
        super().__init__(path, None, self._own)
        self.engine.close()
        self.engine: _Engine = _Engine()

    def fill(self, touched: set[str]) -> None:
        """All tables, of the directory as it is now."""
        self._own.touched = touched
        self.directories = Tree(self.path).directories()
        self.files = [each for one in self.directories for each in Tree(one).partitions()]
        self.engine.begin()
        self.register(records=True)


def touched_by(fault: Fault) -> set[str]:
    """The folders of partitions in which a fault has files; empty for a file of the whole directory."""
    return {_folder(path) for path in fault.files}


def _folder(path: str) -> str:
    parts = path.split("/")[:-1]
    return "" if not parts or parts[-1].startswith("broker-") else parts[-1]


class Alone:
    """The audit of a directory as it is, and with one fault after another. Ends with `close`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._tables = _Tables(str(root))
        self._tables.fill(set())
        self.checks = [check for check in chosen(has=["records"]) if check.severity != "info"]
        self._used: dict[str, set[str]] = {}
        for check in self.checks:
            sql = in_duckdb(check.sql)
            self._used[check.name] = self._tables.engine.uses(sql)
            self._tables.engine.run(f'PREPARE "ask {check.name}" AS SELECT 1 FROM ({sql}) LIMIT 1')  # noqa: S608 - our query
        self._finds_of: Counter[str] = Counter()
        """How many faults each check has found so far: those that find most are asked first."""
        self.of_none = {check.name for check in self.checks if self._finds(check.name)}
        """Checks that have a finding without any fault."""

    def finder_of(self, fault: Fault) -> str | None:
        """A check that finds a fault, the first one; None: it is missed."""
        before = plant(self._root, fault)
        try:
            self._tables.fill(touched_by(fault))
            changed = self._tables.engine.changed
            affected = [each.name for each in self.checks if self._used[each.name] & changed]
            affected.sort(key=lambda name: -self._finds_of[name])
            finder = next((name for name in affected if name not in self.of_none and self._finds(name)), None)
            self._finds_of[finder or ""] += 1
            return finder
        finally:
            restore(self._root, before)

    def close(self) -> None:
        """Give the memory back."""
        self._tables.forget()

    def _finds(self, name: str) -> bool:
        return bool(self._tables.engine.run(f'EXECUTE "ask {name}"').fetchall())
