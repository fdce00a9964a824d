"""DuckDB in this process: tables from Arrow, queries in the SQL that Spark has too."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.audits.engine import EngineError, hash_of_name
from pipeline.duck.dialect import FUNCTIONS, SETTINGS, in_duckdb

TABLE_ROWS: Final = 1_000_000
"""Larger tables stay in the Parquet files in which they come: arbitrary, memory has to hold them."""


class DuckEngine:
    """One connection, with tables and views by name."""

    def __init__(self) -> None:
        self._connection = duckdb.connect()
        for name, value in SETTINGS.items():
            self._connection.execute(f"SET {name} = '{value}'")
        for function in FUNCTIONS:
            self._connection.execute(f"CREATE MACRO {function}")
        self.function("hash_of_name", hash_of_name, ["VARCHAR"], "BIGINT")

    def function(self, name: str, call: Callable[..., Any], kinds: Sequence[str], result: str) -> None:
        """Register a Python function; types are DuckDB's. It is called for null too."""
        create: Any = self._connection.create_function  # the stub lists every type by name
        create(name, call, list(kinds), result, null_handling="special")

    def table(self, name: str, rows: pa.Table) -> None:
        """Make a table of Arrow rows."""
        self._connection.register("arrow_rows", rows)
        self._connection.execute(f'CREATE OR REPLACE TABLE "{name}" AS SELECT * FROM arrow_rows')  # noqa: S608 - our name
        self._connection.unregister("arrow_rows")

    def parquet(self, name: str, schema: pa.Schema, paths: Sequence[str]) -> None:
        """Make a table of Parquet files with this schema, or a view of them if they have many rows.

        A view's queries read the columns that they need from the files.
        """
        self.table(name, schema.empty_table())
        if not paths:
            return
        files = ", ".join(f"'{path}'" for path in paths)
        if sum(pq.read_metadata(path).num_rows for path in paths) <= TABLE_ROWS:
            self._connection.execute(f'INSERT INTO "{name}" SELECT * FROM read_parquet([{files}])')  # noqa: S608
            return
        self._connection.execute(f'DROP TABLE "{name}"')
        self._connection.execute(f'CREATE VIEW "{name}" AS SELECT * FROM read_parquet([{files}])')  # noqa: S608

    def view(self, name: str, sql: str, arguments: Mapping[str, Any] | None = None, *, kept: bool = True) -> None:
        """Make a view of a query, or a table if `kept` or with arguments. Raises EngineError."""
        with _errors():
            kind = "TABLE" if kept else "VIEW"
            text = f'CREATE OR REPLACE {kind} "{name}" AS {in_duckdb(sql)}'
            self._connection.execute(text, dict(arguments) if arguments else None)

    def columns(self, name: str, of: str, names: Sequence[str]) -> None:
        """Make a view of some columns of a table."""
        listed = ", ".join(f'"{each}"' for each in names)
        self._connection.execute(f'CREATE OR REPLACE VIEW "{name}" AS SELECT {listed} FROM "{of}"')  # noqa: S608

    def rows(self, sql: str) -> pa.Table:
        """The rows of a query of this package. Raises EngineError."""
        return self.plain(in_duckdb(sql))

    def plain(self, sql: str) -> pa.Table:
        """The rows of a query in DuckDB's SQL. Raises EngineError."""
        with _errors():
            return _narrow(self._connection.sql(sql).to_arrow_table())

    def answer(self, sql: str, arguments: Mapping[str, Any], most: int) -> tuple[list[dict[str, Any]], int, list[str]]:
        """Return the first rows of a query in its own order, the number of rows, and the columns.

        Raises EngineError.
        """
        with _errors():
            table = self._connection.sql(in_duckdb(sql), params=dict(arguments)).to_arrow_table()
        rows = _narrow(table.slice(0, most)).to_pylist()
        return rows, len(table), list(table.column_names)

    def find(self, sql: str, order: Sequence[str], most: int) -> tuple[list[dict[str, Any]], int]:
        """See `Engine.find`."""
        text = in_duckdb(sql)
        with _errors():
            # Planning costs more than the rest. Most checks have few rows, or none, and are planned once.
            kept = f"CREATE OR REPLACE TEMP TABLE found_rows AS SELECT * FROM ({text}) LIMIT {most}"  # noqa: S608 - our query
            ((count,),) = self._connection.execute(kept).fetchall()
            if not count:
                return [], 0
            columns = self._connection.table("found_rows").columns
            names = [f'"{name}" NULLS FIRST' for name in order if name in columns]
            ordered = f"ORDER BY {', '.join(names)}" if names else ""
            if count < most:
                return self.plain(f"SELECT * FROM found_rows {ordered}").to_pylist(), count  # noqa: S608 - our name
            rows = self.plain(f"SELECT * FROM ({text}) {ordered} LIMIT {most}").to_pylist()  # noqa: S608 - our query
            (counted,) = self.plain(f"SELECT count(*) AS count FROM ({text})").to_pylist()  # noqa: S608 - as above
            return rows, int(counted["count"])

    def close(self) -> None:
        """Close the connection, which releases its memory."""
        self._connection.close()


def _narrow(rows: pa.Table) -> pa.Table:
    """Convert sums, which have 128 bits in DuckDB and 64 in Spark."""
    fields = [pa.field(each.name, pa.int64()) if pa.types.is_decimal(each.type) else each for each in rows.schema]
    return rows.cast(pa.schema(fields))


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except duckdb.Error as error:
        raise EngineError(str(error).splitlines()[0]) from error
