"""Asks the reports, and holds what they answered."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pipeline.rendering.queries import Question
from pipeline.rendering.text import counted, plain
from pipeline.reports.asking import TablesOfReports

ROWS_KEPT: Final = 1000
"""Of each report's rows, in their order; the count is of all."""
LAGS: Final = """
  SELECT run, era, reader, topic, at_ms, sum(lag) AS lag FROM lag_windows
  GROUP BY run, era, reader, topic, at_ms ORDER BY at_ms
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """A report's rows: the first of `count`, with JSON's values."""

    question: Question
    count: int
    columns: tuple[str, ...]
    rows: Sequence[dict[str, Any]]

    @property
    def shown_columns(self) -> list[str]:
        """The columns but those that have nothing in any row."""
        return [name for name in self.columns if any(row[name] is not None for row in self.rows)]


@dataclass(frozen=True, slots=True)
class Report:
    """All answers, of which directory and journal."""

    path: str
    journal: str | None
    topics: Sequence[str]
    answers: Sequence[Answer]
    lags: Sequence[dict[str, Any]] = ()
    """For the picture: lag by reader, topic and window."""

    def rows(self, name: str) -> Sequence[dict[str, Any]]:
        """The rows of a report; none if it was not asked."""
        return next((each.rows for each in self.answers if each.question.name == name), ())

    @property
    def summary(self) -> str:
        """One line."""
        text = f"{counted(len(self.topics), 'topic')} of {self.path}"
        return text if self.journal is None else f"{text}, journal {self.journal}"


def ask(tables: TablesOfReports, question: Question) -> Answer:
    """One report."""
    found, count, columns = tables.ask(question.sql, ROWS_KEPT)
    rows = [{name: plain(value) for name, value in row.items()} for row in found]
    return Answer(question, count, tuple(columns), rows)


def ask_all(
    tables: TablesOfReports, questions: Sequence[Question], show: Callable[[str], None] = lambda _name: None
) -> list[Answer]:
    """All of them, one after the other; `show` is called with the name of each before it begins."""
    answers = []
    for question in questions:
        show(question.name)
        answers.append(ask(tables, question))
    return answers


def lags(tables: TablesOfReports) -> list[dict[str, Any]]:
    """The lag of each reader and topic over time: what its picture shows. At most sixty windows each."""
    return tables.ask(LAGS, 20_000)[0]
