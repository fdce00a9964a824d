"""The tables that the conformance report asks: the audits' that are made of a journal alone, and a few of its own."""

from collections.abc import Mapping
from typing import Final

from pyspark.sql import SparkSession

from pipeline.audits import journal
from pipeline.audits.room import Room
from pipeline.showing import queries
from pipeline.showing.queries import Question

PACKAGE: Final = "pipeline.conformance"
ORDER: Final = ("clients", "versions", "latencies", "errors")
WIRE_VIEWS: Final = tuple(
    name
    for name in journal.VIEWS
    if name not in {"era", "deletions", "group_clients", "deliveries", "current_produces", "current_fetches"}
)
"""Of the audits' views, those that speak of the wire alone and that the invariants ask."""


def questions() -> Mapping[str, Question]:
    """The parts of the report that are queries, in their order."""
    return queries.questions(PACKAGE, ORDER)


def register(spark: SparkSession, room: Room, path: str) -> None:
    """Make the tables of a journal."""
    # Names of topics come from the journal alone: there is no directory.
    spark.createDataFrame([], "topic_id string, topic string").createOrReplaceTempView("partitions")
    journal.register(spark, room, path, WIRE_VIEWS)
    for name in ("spoken", "offered", "reactions"):
        frame = spark.sql(queries.read_all(PACKAGE, "views")[name])
        (room.kept(name, frame) if name == "offered" else frame).createOrReplaceTempView(name)
