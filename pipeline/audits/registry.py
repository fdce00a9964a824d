"""The checks as data: one SQL file each, whose first comment lines describe it.

```
-- title: sequence numbers are missing
-- severity: error
-- needs: journal
-- Explanation, as many lines as it takes, for the reader of the finding.
SELECT ... AS topic, ... AS partition, ... AS offset, ...
```

Every row that the query answers is one finding. `severity` is `error` (something was lost, doubled or mixed up),
`warning` (needs a look) or `info`. `needs` names what it asks besides the logs (`NEEDS`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

from pipeline.rendering import queries

SEVERITIES: Final = ("error", "warning", "info")
"""The worst first."""
NEEDS: Final = ("records", "journal", "id", "counts", "live", "history", "logs")
"""Tables that a check may use besides those of the logs; `logs`, if a check of a history uses them too."""
PARTITION_VIEWS: Final = ("setting_rules", "topic_settings", "partitions")
"""The views that all others use, in order."""
LOG_VIEWS: Final = (
    "produced", "transactions", "coordinator", "metadata_topics", "metadata_partitions", "whole_topics",
    "open_transactions", "committed", "decisions", "leader_epochs", "share_states", "group_states", "group_tasks",
)  # fmt: skip
"""Views of the logs and of the coordinators' records; each may use the ones before it."""


class NoSuchCheckError(LookupError):
    """No check has this name; the message is for the user."""


class CheckFileError(ValueError):
    """An unusable folder of checks; the message is for the user."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check. `sql` returns the offending rows; `explanation` is one paragraph of plain text."""

    name: str
    title: str
    severity: str
    explanation: str
    sql: str
    needs: frozenset[str] = frozenset()


def parse(name: str, text: str) -> Check:
    """Parse the file of a check.

    Raises:
        ValueError: a title, a severity or an explanation is missing.
    """
    query = queries.parse(text, ("title", "severity", "needs"))
    fields = query.fields
    if not fields["title"] or fields["severity"] not in SEVERITIES or not query.explanation or not query.sql:
        raise ValueError(f"the check {name} has no title, severity, explanation or query")
    needs = queries.names_in(fields["needs"])
    return Check(name, fields["title"], fields["severity"], query.explanation, query.sql, needs)


@cache
def checks() -> Mapping[str, Check]:
    """Return all checks by name, the worst first."""
    all_checks = [parse(name, text) for name, text in queries.read_all("pipeline.audits", "checks").items()]
    return {
        check.name: check for check in sorted(all_checks, key=lambda each: (SEVERITIES.index(each.severity), each.name))
    }


def with_folder(folder: str) -> dict[str, Check]:
    """Return all checks, together with those in a folder of SQL files.

    Raises:
        CheckFileError: a file is not a check, or has the name of an existing check.
    """
    try:
        paths = sorted(each for each in Path(folder).iterdir() if each.suffix == ".sql")
    except OSError as error:
        raise CheckFileError(f"--checks {folder}: {error.strerror}") from None
    if not paths:
        raise CheckFileError(f"--checks {folder}: there is no file *.sql")
    known = dict(checks())
    for path in paths:
        if path.stem in known:
            raise CheckFileError(f"--checks {path}: there is a check {path.stem} already; give the file another name")
        try:
            check = parse(path.stem, path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise CheckFileError(f"--checks {path}: {error}; see `understudy audit --show offset-hole`") from None
        if strange := check.needs.difference(NEEDS):
            raise CheckFileError(f"--checks {path}: needs {min(strange)}; there are {', '.join(NEEDS)}")
        known[path.stem] = check
    return known


def chosen(
    names: Iterable[str] = (),
    *,
    without: Iterable[str] = (),
    has: Iterable[str] = (),
    known: Mapping[str, Check] | None = None,
) -> list[Check]:
    """Return the checks to run: those in `names` (default: all) except `without`, if the tables that they need exist.

    Raises:
        NoSuchCheckError: no check has this name.
    """
    known, there = known or checks(), set(has)
    for name in (*names, *without):
        if name not in known:
            raise NoSuchCheckError(f"there is no check {name!r}; `understudy audit --list` shows them")
    wanted = list(names) or list(known)
    return [known[name] for name in wanted if name not in set(without) and known[name].needs <= there]


def view(name: str) -> str:
    """Return the query of a view that the checks use."""
    return files("pipeline.audits").joinpath("views", f"{name}.sql").read_text(encoding="utf-8")
