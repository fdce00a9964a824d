"""Runs the reports' queries and holds their results."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pipeline.rendering.queries import Question
from pipeline.rendering.text import counted, plain
from pipeline.reports.asking import TablesOfReports

ROWS_KEPT: Final = 1000
"""Rows that are kept of each report, in order; the count covers all of them: arbitrary, more would not be read."""
LAGS: Final = """
  SELECT run, era, reader, topic, at_ms, sum(lag) AS lag FROM lag_windows
  GROUP BY run, era, reader, topic, at_ms ORDER BY at_ms
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """A report's rows: the first of `count`, with JSON values."""

    question: Question
    count: int
    columns: tuple[str, ...]
    rows: Sequence[dict[str, Any]]

    @property
    def shown_columns(self) -> list[str]:
        """Return the columns that have a value in some row."""
        return [name for name in self.columns if any(row[name] is not None for row in self.rows)]


@dataclass(frozen=True, slots=True)
class Report:
    """All results, with their directory and journal."""

    path: str
    journal: str | None
    topics: Sequence[str]
    answers: Sequence[Answer]
    lags: Sequence[dict[str, Any]] = ()
    """For the picture: lag by reader, topic and window."""

    def rows(self, name: str) -> Sequence[dict[str, Any]]:
        """Return the rows of a report; none if it was not requested."""
        return next((each.rows for each in self.answers if each.question.name == name), ())

    @property
    def summary(self) -> str:
        """Return a one-line summary."""
        text = f"{counted(len(self.topics), 'topic')} of {self.path}"
        return text if self.journal is None else f"{text}, journal {self.journal}"


def ask(tables: TablesOfReports, question: Question) -> Answer:
    """Run one report."""
    kept_rows, count, columns = tables.ask(question.sql, ROWS_KEPT)
    rows = [{name: plain(value) for name, value in row.items()} for row in kept_rows]
    return Answer(question, count, tuple(columns), rows)


def ask_all(
    tables: TablesOfReports, questions: Sequence[Question], show: Callable[[str], None] = lambda _name: None
) -> list[Answer]:
    """Run all reports, one after the other; `show` is called with each name before it starts."""
    answers = []
    for question in questions:
        show(question.name)
        answers.append(ask(tables, question))
    return answers


def lags(tables: TablesOfReports) -> list[dict[str, Any]]:
    """Return the lag of each reader and topic over time, for the picture; at most sixty windows each."""
    # Arbitrary: some three hundred lines of sixty windows, more than a picture shows.
    return tables.ask(LAGS, 20_000)[0]
