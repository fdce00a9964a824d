"""Makes the tables of a wire journal (`docs/debugging.md`)."""

import base64
import json
from collections.abc import Sequence
from struct import Struct, error
from typing import TYPE_CHECKING, Final

from pipeline.audits.registry import view

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipeline.audits.table_cache import TableCache

VIEWS: Final = (
    "calls", "topic_names", "era", "deletions", "produces", "fetches", "commits", "group_clients", "deliveries",
    "producing", "effective_commits", "members", "granted", "listed", "assignments", "current_produces",
    "current_fetches", "answer_items",
)  # fmt: skip
"""Views, each of which may use the ones before it."""
OWNED: Final = "array<struct<topic:string,partition:int>>"

_SHORT, _INT = Struct(">h"), Struct(">i")


def register(spark: "SparkSession", cache: "TableCache", path: str, names: Sequence[str] = VIEWS) -> None:
    """Make the table and the views of a journal, all or those named. Requires the table `partitions`."""
    read_wire(spark, cache, path)
    make_views(spark, cache, names)


def read_wire(spark: "SparkSession", cache: "TableCache", path: str) -> None:
    """Make the table of a journal's lines."""
    wire = spark.read.format("wire_journal").load(path)
    cache.kept("wire", wire).createOrReplaceTempView("wire")


def make_views(spark: "SparkSession", cache: "TableCache", names: Sequence[str] = VIEWS) -> None:
    """Make the views of a journal, all or those named. Requires the tables `partitions` and `wire`."""
    spark.udf.register("owned_partitions", owned_partitions, OWNED)
    for name in names:
        frame = spark.sql(view(name))
        (frame if name == "calls" else cache.kept(name, frame)).createOrReplaceTempView(name)


def owned_partitions(shown: str | None) -> list[tuple[str, int]]:
    """Return the partitions in a member's assignment as recorded in the journal; none if it cannot be decoded.

    Layout: version, then topics with their partitions (ConsumerProtocolAssignment).
    """
    if not shown:
        return []
    raw = shown.encode()
    if shown.startswith("{"):
        try:
            raw = base64.b64decode(json.loads(shown)["base64"])
        except (ValueError, KeyError, TypeError):
            return []
    try:
        return list(_owned(raw))
    except (error, UnicodeDecodeError, IndexError):
        return []


def _owned(raw: bytes) -> list[tuple[str, int]]:
    (topics,) = _INT.unpack_from(raw, 2)
    at = 6
    found: list[tuple[str, int]] = []
    for _ in range(topics):
        (size,) = _SHORT.unpack_from(raw, at)
        name = raw[at + 2 : at + 2 + size].decode()
        at += 2 + size
        (count,) = _INT.unpack_from(raw, at)
        found += [(name, _INT.unpack_from(raw, at + 4 + 4 * index)[0]) for index in range(count)]
        at += 4 + 4 * count
    return found
