"""Journals that differ from a sound one in a single answer, each audited as a journal of its own.

The tables of the logs are made once. For each journal the views are filled again and the checks asked again, by
statements that DuckDB has planned once; so no finding of one journal can hide or make one of another. Views and checks
that look at other APIs only are left as they are.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from pipeline.answers.calls import BULK, Call, Fault, calls_of
from pipeline.answers.judge import faults_alone, judged
from pipeline.audits import journal
from pipeline.audits.registry import Check, chosen, view
from pipeline.duck.dialect import in_duckdb
from pipeline.duck.tables import DuckTables, register_journal
from pipeline.reading import read_journal
from pipeline.schemas import JOURNAL
from protocol.api_errors import ERRORS_OF
from tests.pipeline.answer_mutations import Line, Mutation, as_text, mutated

_OF_ANY: Final = frozenset({"answer-value", "answer-error", "verdict-withdrawn"})
"""Checks that look at all APIs and name some."""
_USED: Final = re.compile(r"\b(?:FROM|JOIN) (\w+)")
_QUOTED: Final = re.compile(r"'([A-Z][A-Za-z]+)'")
_OF_ANSWERS: Final = ("answer_faults", "answer_places")


class Alone:
    """The audit of a directory beside one journal after another. Ends with `close`."""

    def __init__(self, data: Path, lines: Sequence[Line], scratch: Path) -> None:
        scratch.mkdir(parents=True, exist_ok=True)
        self._data, self._lines, self._scratch = data, lines, scratch
        self._write(lines)
        self._calls = {each.id: each for each in calls_of(read_journal(scratch))}
        self._known = {id(each): faults_alone(each) for each in self._calls.values()}
        self._tables = DuckTables(str(data))
        # A plan made for the rows of one journal must hold for those of another.
        self._execute("SET disabled_optimizers = 'statistics_propagation'")
        self._execute("SET threads = 1")
        self._tables.register()
        register_journal(self._tables.engine, str(scratch))
        self._sound = judged(self._calls.values(), self._faults_alone)
        for name, rows in self._sound.items():
            self._tables.engine.table(name, rows)
        for name in journal.VIEWS:
            self._execute(f'PREPARE "fill {name}" AS INSERT INTO "{name}" {in_duckdb(view(name))}')
        self._about: dict[str, frozenset[str] | None] = dict.fromkeys(_OF_ANSWERS)
        for name in journal.VIEWS:
            self._about[name] = frozenset() if name == "era" else self._apis_in(view(name))  # no answers
        self.checks: list[Check] = [each for each in chosen(has=("records", "journal")) if "journal" in each.needs]
        for each in self.checks:
            self._about[each.name] = None if each.name in _OF_ANY else self._apis_in(each.sql)
            self._execute(f'PREPARE "ask {each.name}" AS SELECT 1 FROM ({in_duckdb(each.sql)}) LIMIT 1')  # noqa: S608 - our query
        self.of_none = set(self._findings())
        self._filled_of: str | None = None
        """The API whose views are those of a wrong answer."""

    def checks_that_find(self, mutation: Mutation) -> set[str]:
        """The checks that find a wrong answer: those of the judge of answers one by one, or else the first query."""
        faults = self._faults(mutation)
        kinds = set(faults["answer_faults"].column("kind").to_pylist()) - self.of_none
        if kinds:
            return kinds
        if self._filled_of not in (None, mutation.api):
            self._fill(self._sound, self._filled_of)
        self._put(mutated(self._lines, mutation))
        self._fill(faults, mutation.api)
        self._filled_of = mutation.api
        name = next((each for each in self._findings(mutation.api) if each not in self.of_none), None)
        self._put(self._lines[mutation.line])
        return {name} if name else set()

    def close(self) -> None:
        """Give the memory back."""
        self._tables.forget()

    def _apis_in(self, sql: str) -> frozenset[str] | None:
        """The APIs whose answers a query looks at, by the names and views in its text; None: those of all."""
        used = set(_USED.findall(sql))
        apis = set(_QUOTED.findall(sql)).intersection(ERRORS_OF)
        if "wire" in used or ("calls" in used and not apis and "answer_faults" not in used):
            return None
        for name in used.intersection(self._about).difference(_OF_ANSWERS, {"calls"}):
            about = self._about[name]
            apis.update(ERRORS_OF if about is None else about)
        if "answer_places" in used:
            apis.update(ERRORS_OF)
        return frozenset(apis)

    def _write(self, lines: Sequence[Line]) -> None:
        (self._scratch / "wire-R-000001.jsonl").write_text("".join(map(as_text, lines)), encoding="utf-8")

    def _call(self, line: Line) -> Call:
        row = {name: line.get(name) for name in JOURNAL.names} | {"run": "R"}
        for name in ("request", "response"):
            row[name] = None if line[name] is None else json.dumps(line[name])
        (call,) = calls_of([pa.RecordBatch.from_pylist([row], JOURNAL)])
        return call

    def _put(self, line: Line) -> None:
        """Have another line in the table of the journal."""
        body = None if line["response"] is None else json.dumps(line["response"], separators=(",", ":"))
        values: list[Any] = [body, line["error"], line["error_codes"], line["id"]]
        self._execute("UPDATE wire SET response = ?, error = ?, error_codes = ? WHERE id = ?", values)

    def _fill(self, answers: Mapping[str, pa.Table], api: str) -> None:
        """Make again what is made of an API's answers."""
        for name in _OF_ANSWERS:
            rows = answers[name]
            self._execute(f"DELETE FROM {name}")  # noqa: S608 - our name
            if rows.num_rows:
                self._append(name, rows)
        for name in journal.VIEWS:
            if self._is_about(name, api):
                self._execute(f'DELETE FROM "{name}"')  # noqa: S608 - our name
                self._execute(f'EXECUTE "fill {name}"')

    def _append(self, name: str, rows: pa.Table) -> None:
        marks = ", ".join("?" * rows.num_columns)
        for row in rows.to_pylist():
            self._execute(f"INSERT INTO {name} VALUES ({marks})", list(row.values()))  # noqa: S608 - our name

    def _faults(self, mutation: Mutation) -> dict[str, pa.Table]:
        line = mutated(self._lines, mutation)
        calls = dict(self._calls)
        if line["api"] not in BULK:
            calls[line["id"]] = self._call(line)
        return judged(calls.values(), self._faults_alone)

    def _faults_alone(self, call: Call) -> list[Fault]:
        """Those of the sound journal's calls are found once."""
        known = self._known.get(id(call))
        return faults_alone(call) if known is None else known

    def _is_about(self, name: str, api: str) -> bool:
        about = self._about[name]
        return about is None or api in about

    def _findings(self, api: str | None = None) -> Iterator[str]:
        for each in self.checks:
            if (api is None or self._is_about(each.name, api)) and self._execute(
                f'EXECUTE "ask {each.name}"'
            ).fetchall():
                yield each.name

    def _execute(self, sql: str, values: Sequence[Any] | None = None) -> Any:
        return self._tables.engine._connection.execute(sql, values)


def checks_that_find(data: Path, lines: Sequence[Line], mutations: Sequence[Mutation], scratch: Path) -> list[set[str]]:
    """Checks that find each wrong answer, each in a journal of its own."""
    alone = Alone(data, lines, scratch)
    names = [alone.checks_that_find(each) for each in mutations]
    alone.close()
    return names
