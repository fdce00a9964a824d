"""Translates queries from Spark's SQL, in which they are written, to DuckDB's.

`translations.json` has the translation of every query of this package, by the checksum of its text, so that a command
needs no translator. `python tools/translate_queries.py` writes it.
"""

import hashlib
import json
import re
from functools import cache
from importlib.resources import files
from typing import Any, Final

from pipeline.audits.engine import EngineError

FILE: Final = "translations.json"
_TYPES: Final = {
    "STRING": "VARCHAR",
    "INT": "INTEGER",
    "BIGINT": "BIGINT",
    "BOOLEAN": "BOOLEAN",
    "SMALLINT": "SMALLINT",
}
_PARTS: Final = re.compile(r"[A-Za-z_][A-Za-z_0-9]*|[<>:,]")


class NoTranslationError(EngineError):
    """A query that cannot be translated; the message is for the user."""


def key_of(sql: str) -> str:
    """Return the checksum of a query's text."""
    return hashlib.sha256(sql.encode()).hexdigest()[:24]


@cache
def _known() -> dict[str, str]:
    found = files("pipeline.duck").joinpath(FILE)
    known: dict[str, str] = json.loads(found.read_text(encoding="utf-8")) if found.is_file() else {}
    return known


def translated(sql: str) -> str:
    """Translate a query for DuckDB.

    Raises:
        NoTranslationError: it is not a query of this package, and the translator is missing or does not understand it.
    """
    known = _known().get(key_of(sql))
    return translate(sql) if known is None else known


def translate(sql: str) -> str:
    """Translate a query from Spark's SQL to DuckDB's. Raises NoTranslationError."""
    try:
        import sqlglot  # noqa: PLC0415 - an extra
        from sqlglot import exp  # noqa: PLC0415 - as above
    except ModuleNotFoundError:
        remedy = "run pip install sqlglot, or use --spark-above 0"
        raise NoTranslationError(f"sqlglot is not installed, which translates queries: {remedy}") from None
    try:
        (tree,) = sqlglot.parse(sql, read="spark")
    except sqlglot.ParseError as error:
        raise NoTranslationError(f"the query cannot be read: {error}") from None
    assert tree is not None
    for node in reversed(list(tree.walk())):  # inner nodes first
        changed = _changed(node, exp)
        if changed is not node:
            node.replace(changed)
    return str(tree.sql(dialect="duckdb", comments=False))


def _changed(node: Any, exp: Any) -> Any:
    """Return a node in DuckDB's form, where the translator does not know it."""
    if isinstance(node, exp.FromJson):
        schema = exp.Literal.string(json.dumps(structure(node.expression.name)))
        return exp.Anonymous(this="json_transform", expressions=[node.this, schema])
    if isinstance(node, exp.ArrayDistinct):
        return exp.Anonymous(this="distinct_in_order", expressions=[node.this])
    if isinstance(
        node, exp.ArgMax | exp.ArgMin
    ):  # in Spark their values may be null, where `arg_max` would take another row
        name = "arg_max_null" if isinstance(node, exp.ArgMax) else "arg_min_null"
        return exp.Anonymous(this=name, expressions=[node.this, node.expression])
    if isinstance(node, exp.ArrayUniqueAgg):
        return exp.Anonymous(this="collect_set", expressions=[node.this])
    if isinstance(node, exp.Exists) and isinstance(node.expression, exp.Lambda):
        chosen = exp.Anonymous(this="list_filter", expressions=[node.this, node.expression])
        return exp.GT(this=exp.Anonymous(this="len", expressions=[chosen]), expression=exp.Literal.number(0))
    if isinstance(node, exp.Lateral) and node.args.get("outer") and isinstance(node.this, exp.Explode):
        each = node.this.this
        none = exp.EQ(
            this=exp.Coalesce(
                this=exp.Anonymous(this="len", expressions=[each.copy()]), expressions=[exp.Literal.number(0)]
            ),
            expression=exp.Literal.number(0),
        )
        rows = exp.Case(ifs=[exp.If(this=none, true=exp.Array(expressions=[exp.Null()]))], default=each.copy())
        node.this.set("this", rows)
        node.set("outer", None)
    return node


def structure(ddl: str) -> dict[str, Any]:
    """Return the columns of a Spark schema in the form of DuckDB's `json_transform`."""
    parts = _PARTS.findall(ddl)
    found, rest = _fields(parts, 0)
    assert rest == len(parts), ddl
    return found


def _fields(parts: list[str], at: int) -> tuple[dict[str, Any], int]:
    found: dict[str, Any] = {}
    while at < len(parts) and parts[at] != ">":
        name, at = parts[at], at + 1
        if parts[at] == ":":
            at += 1
        found[name], at = _type(parts, at)
        if at < len(parts) and parts[at] == ",":
            at += 1
    return found, at


def _type(parts: list[str], at: int) -> tuple[Any, int]:
    name = parts[at].upper()
    if name == "ARRAY":
        inner, at = _type(parts, at + 2)
        return [inner], at + 1
    if name == "STRUCT":
        fields, at = _fields(parts, at + 2)
        return fields, at + 1
    return _TYPES[name], at + 1
