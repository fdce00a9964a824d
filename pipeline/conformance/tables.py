"""The tables that the conformance report asks: the audits' that are made of a journal alone, and a few of its own."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pipeline.audits import journal
from pipeline.rendering import queries
from pipeline.rendering.queries import Question

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipeline.audits.table_cache import TableCache

PACKAGE: Final = "pipeline.conformance"
ORDER: Final = ("clients", "versions", "latencies", "errors", "occasions")
WIRE_VIEWS: Final = tuple(
    name
    for name in journal.VIEWS
    if name not in {"era", "deletions", "group_clients", "deliveries", "current_produces", "current_fetches"}
)
"""Of the audits' views, those that speak of the wire alone and that the invariants ask."""


def questions() -> Mapping[str, Question]:
    """The parts of the report that are queries, in their order."""
    return queries.questions(PACKAGE, ORDER)


VIEWS: Final = ("spoken", "offered", "reactions", "occasions")
"""Views of this report, in the order in which they build on each other."""


def views() -> Mapping[str, str]:
    """The queries of the views by their names."""
    return queries.read_all(PACKAGE, "views")


def register(spark: "SparkSession", cache: "TableCache", path: str) -> None:
    """Make the tables of a journal."""
    # Names of topics come from the journal alone: there is no directory.
    spark.createDataFrame([], "topic_id string, topic string").createOrReplaceTempView("partitions")
    journal.register(spark, cache, path, WIRE_VIEWS)
    for name in VIEWS:
        frame = spark.sql(views()[name])
        (cache.kept(name, frame) if name == "offered" else frame).createOrReplaceTempView(name)
