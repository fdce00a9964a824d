"""DuckDB's form of the queries, which are written in what Spark's SQL and DuckDB's have in common.

`FUNCTIONS` defines Spark's functions as macros. What has no common spelling, the queries have in Spark's, and
`in_duckdb` replaces it: lambdas (`item -> item + 1`), `IGNORE NULLS`, `* EXCEPT`, arguments (`:name`), the column
`offset`, which is a keyword of DuckDB, and the names in `RENAMED`.

Other constructs that only one of them has are avoided: `LATERAL VIEW`, `RLIKE`, `<=>`, `UNNEST`, `exists` with a
lambda, aliases in `struct`, and `DISTINCT` or `FILTER` in an aggregate that is a macro.
"""

import re
from functools import cache
from typing import Final

_APART: Final = re.compile(r"""('(?:''|[^'])*'|"[^"]*"|--[^\n]*)""")
"""What stays as it is: texts, quoted names and comments."""
RENAMED: Final = {
    "array": "list_value", "array_join": "array_to_string", "max_by": "arg_max_null", "min_by": "arg_min_null",
    "size": "array_length", "struct": "struct_pack", "transform": "list_transform",
}  # fmt: skip
"""Functions that no macro can define: their names are reserved, they name fields, take a lambda, or have a filter."""
_SPELLINGS: Final = (
    (re.compile(r"\b(\w+) ->"), r"lambda \1:"),
    (re.compile(r"\) IGNORE NULLS\b"), " IGNORE NULLS)"),
    (re.compile(r"\* EXCEPT\b"), "* EXCLUDE"),
    (re.compile(r"(?<!\w):(\w+)"), r"$\1"),
    (re.compile(r"\boffset\b"), '"offset"'),
    *((re.compile(rf"\b{spark}\("), f"{duck}(") for spark, duck in RENAMED.items()),
)


@cache
def in_duckdb(sql: str) -> str:
    """Return a query in DuckDB's spelling."""
    parts = _APART.split(sql)
    for at in range(0, len(parts), 2):
        for pattern, spelling in _SPELLINGS:
            parts[at] = pattern.sub(spelling, parts[at])
    return "".join(parts)


def _structure(ddl: str) -> str:
    """Return the expression that converts columns as Spark describes them to the form of `json_transform`.

    Types are converted from the inside out, for at most six levels.
    """
    for _ in range(6):  # ours, deeper than any column
        ddl = rf"system.main.regexp_replace({ddl}, 'ARRAY<([^<>]*)>', '[\1]', 'gi')"
        ddl = rf"system.main.regexp_replace({ddl}, 'STRUCT<([^<>]*)>', '{{\1}}', 'gi')"
    quoted = rf"""system.main.regexp_replace({ddl}, '(\w+)', '"\1"', 'g')"""
    return rf"""'{{' || system.main.regexp_replace({quoted}, '("\w+"):?\s+', '\1: ', 'g') || '}}'"""


def _concatenation(most: int) -> str:
    """Return the forms of `concat`, which is null if an argument is."""
    names = [f"value_{at}" for at in range(most)]
    return ", ".join(f"({', '.join(names[:count])}) AS {' || '.join(names[:count])}" for count in range(2, most + 1))


FUNCTIONS: Final = (
    f"concat{_concatenation(8)}",  # arguments: more than a query of this package has
    f"from_json(value, columns) AS json_transform(value, {_structure('columns')})",
    "array_distinct(items) AS list_filter(items, lambda an_item, n: list_position(items, an_item) = n)",
    "array_except(items, others) AS list_filter(array_distinct(items), lambda item: not list_contains(others, item))",
    "array_max(items) AS list_max(items)",
    "array_min(items) AS list_min(items)",
    "array_sort(items) AS list_sort(items, 'ASC', 'NULLS LAST')",
    "collect_set(value) AS coalesce(list(DISTINCT value) FILTER (value IS NOT NULL), [])",
    "div(value, divisor) AS value // divisor",
    "element_at(items, place) AS list_extract(items, place)",
    "explode(items) AS unnest(items)",
    "explode(items) AS TABLE SELECT unnest(items)",
    "get(items, place) AS list_extract(items, place + 1)",
    "get_json_object(value, path) AS json_extract_string(value, path)",
    "now_ms() AS epoch_ms(now())",
    "pmod(value, divisor) AS ((value % divisor) + divisor) % divisor",
    "regexp_like(value, pattern) AS regexp_matches(value, pattern)",
    "regexp_replace(value, pattern, other) AS system.main.regexp_replace(value, pattern, other, 'g')",
    "sequence(low, high) AS generate_series(low, high)",
    "slice(items, place, length) AS array_slice(items, place, place + length - 1)",
    "sort_array(items) AS list_sort(items, 'ASC', 'NULLS FIRST')",
    "split(value, pattern) AS str_split_regex(value, pattern)",
    "timestamp_micros(value) AS make_timestamp(value)",
    "timestamp_millis(value) AS epoch_ms(CAST(value AS BIGINT))",
    "try_element_at(items, place) AS list_extract(items, place)",
    "xxhash64(value) AS hash(value), (one, two, three) AS hash(one, two, three)",
)
"""Functions of Spark that DuckDB does not have, or has with another meaning: its `concat` ignores null, for example."""
SETTINGS: Final = {
    "TimeZone": "UTC",
    "default_null_order": "NULLS_FIRST_ON_ASC_LAST_ON_DESC",
}
"""Null is the least value when rows are sorted, as in Spark."""
