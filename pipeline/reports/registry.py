"""The reports as data: one SQL file each, whose first comment lines say what it is about (`pipeline.showing.queries`).

`needs`: `records` (keys and values are decoded) or `journal`. Rows come in the order in which they are shown.
"""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Final

from pipeline.showing import queries
from pipeline.showing.queries import Question

PACKAGE: Final = "pipeline.reports"
ORDER: Final = (
    "size", "skew", "partitions", "keys", "hot-keys", "compaction", "retention", "lag", "lag-history", "values",
    "json-shape",
)  # fmt: skip
"""As they stand in a report."""


class NoSuchReportError(LookupError):
    """A name that no report has; the message is for the user."""


def questions() -> Mapping[str, Question]:
    """All reports by name, in their order."""
    return queries.questions(PACKAGE, ORDER)


def chosen(names: Iterable[str] = (), without: Iterable[str] = (), *, journal: bool = True) -> list[Question]:
    """The reports to make: those named (default: all that can be made) but some.

    Raises:
        NoSuchReportError: a name that no report has, or one that needs the journal that there is not.
    """
    known, left_out = questions(), set(without)
    for name in (*names, *left_out):
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise NoSuchReportError(f"there is no report {name!r}{hint}; there are {', '.join(known)}")
    lacking = [name for name in names if "journal" in known[name].needs and not journal]
    if lacking:
        raise NoSuchReportError(
            f"the report {lacking[0]} needs --journal DIR, the files of `understudy serve --journal`"
        )
    wanted = list(names) or [each.name for each in known.values() if journal or "journal" not in each.needs]
    return [known[name] for name in dict.fromkeys(wanted) if name not in left_out]
