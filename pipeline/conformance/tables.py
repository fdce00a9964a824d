"""The tables of the conformance report: those of the audits that need only a journal, and a few more."""

from collections.abc import Mapping
from typing import Final

from pipeline.audits import journal
from pipeline.rendering import queries
from pipeline.rendering.queries import Question

PACKAGE: Final = "pipeline.conformance"
ORDER: Final = ("clients", "versions", "latencies", "errors", "occasions")
WIRE_VIEWS: Final = tuple(
    name
    for name in journal.VIEWS
    if name not in {"era", "deletions", "group_clients", "deliveries", "current_produces", "current_fetches"}
)
"""Views of the audits that describe the wire alone and that the invariants use."""


def questions() -> Mapping[str, Question]:
    """Return the parts of the report that are queries, in order."""
    return queries.questions(PACKAGE, ORDER)


VIEWS: Final = ("spoken", "offered", "reactions", "occasions")
"""Views of this report, each of which may use the ones before it."""


def views() -> Mapping[str, str]:
    """Return the queries of the views by name."""
    return queries.read_all(PACKAGE, "views")
