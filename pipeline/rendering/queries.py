"""Reads queries from files: SQL below comment lines that describe it.

```
-- title: ...
-- needs: journal
-- Explanation, as many lines as it takes.
SELECT ...
```
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Query:
    """A query and its header. `fields`: the lines `name: text`; `explanation`: the rest, one paragraph."""

    fields: dict[str, str]
    explanation: str
    sql: str


def parse(text: str, names: Sequence[str]) -> Query:
    """Parse a file's text; `names` are the fields of the header, missing ones are empty."""
    lines = text.splitlines()
    fields = dict.fromkeys(names, "")
    explanation: list[str] = []
    for line in (line[2:].strip() for line in lines if line.startswith("--")):
        name, colon, rest = line.partition(":")
        if colon and name in fields and not explanation:
            fields[name] = rest.strip()
        else:
            explanation.append(line)
    body = "\n".join(line for line in lines if not line.startswith("--")).strip()
    return Query(fields, " ".join(explanation), body)


def names_in(text: str) -> frozenset[str]:
    """Split names at commas."""
    return frozenset(filter(None, (name.strip() for name in text.split(","))))


def read_all(package: str, folder: str) -> dict[str, str]:
    """Return the texts of a folder's SQL files by name, in alphabetical order."""
    parsed = {
        entry.name.removesuffix(".sql"): entry.read_text(encoding="utf-8")
        for entry in files(package).joinpath(folder).iterdir()
        if entry.name.endswith(".sql")
    }
    return dict(sorted(parsed.items()))


@dataclass(frozen=True, slots=True)
class Question:
    """One named query of a report. Its rows are in display order."""

    name: str
    title: str
    explanation: str
    sql: str
    needs: frozenset[str] = frozenset()


@cache
def questions(package: str, order: tuple[str, ...]) -> Mapping[str, Question]:
    """Return the questions in a package's folder `questions` by name, in an order that must contain all of them.

    Raises:
        ValueError: one has no title, explanation or query.
    """
    by_name = {}
    for name, text in read_all(package, "questions").items():
        query = parse(text, ("title", "needs"))
        if not (query.fields["title"] and query.explanation and query.sql):
            raise ValueError(f"the question {name} has no title, explanation or query")
        needs = names_in(query.fields["needs"])
        by_name[name] = Question(name, query.fields["title"], query.explanation, query.sql, needs)
    return {name: by_name[name] for name in sorted(by_name, key=order.index)}
