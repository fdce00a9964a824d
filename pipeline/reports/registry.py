"""The reports as data: one SQL file each, whose first comment lines describe it.

`needs`: `records` (keys and values are decoded) or `journal`. Rows are in display order.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from control_api.spelling import hint
from pipeline.rendering import queries
from pipeline.rendering.queries import Question

PACKAGE: Final = "pipeline.reports"
ORDER: Final = (
    "size", "skew", "partitions", "keys", "hot-keys", "compaction", "retention", "lag", "lag-history", "stable", "lost",
    "values", "json-shape",
)  # fmt: skip
"""In the order of a report."""


class NoSuchReportError(LookupError):
    """No report has this name; the message is for the user."""


def questions() -> Mapping[str, Question]:
    """Return all reports by name, in order."""
    return queries.questions(PACKAGE, ORDER)


def chosen(names: Iterable[str] = (), without: Iterable[str] = (), *, journal: bool = True) -> list[Question]:
    """Return the reports to make: those in `names` (default: all that are possible) except `without`.

    Raises:
        NoSuchReportError: an unknown name, or a report that needs a journal without one.
    """
    known, left_out = questions(), set(without)
    for name in (*names, *left_out):
        if name not in known:
            raise NoSuchReportError(f"there is no report {name!r}{hint(name, known)}; there are {', '.join(known)}")
    missing = [name for name in names if "journal" in known[name].needs and not journal]
    if missing:
        raise NoSuchReportError(
            f"the report {missing[0]} needs --journal DIR, the files of `understudy serve --journal`"
        )
    wanted = list(names) or [each.name for each in known.values() if journal or "journal" not in each.needs]
    return [known[name] for name in dict.fromkeys(wanted) if name not in left_out]
