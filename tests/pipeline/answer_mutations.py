"""Wrong answers of a broker, made of the right ones of a journal: every field of every API's answer, changed.

The ways follow from a field's type: a number that is negative, smaller or larger, another name or id, an error that
only ElectLeaders has, a flag that is flipped, a list that is empty or has an element twice. Which of them an audit
finds is not considered here. Each wrong answer is in a copy of the journal, under a run of its own.
"""

import copy
import dataclasses
import importlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.audits.registry import NEEDS, chosen
from pipeline.duck.tables import DuckTables
from tools.schema_fields import python_name

Path_ = tuple[str | int, ...]
FOREIGN = "ELECTION_NOT_NEEDED"
"""An error of ElectLeaders alone."""
_RUN = '"run":"R"'
_DEFAULTS: tuple[Any, ...] = (None, "", 0, -1, "NONE", False, [], "AAAAAAAAAAAAAAAAAAAAAA")


class Mutation(NamedTuple):
    """One wrong answer."""

    api: str
    field: str
    """Path in the answer; `[]` is any element."""
    how: str
    line: int
    """Index of the request in the journal."""
    path: Path_
    value: Any


def lines_of(journal: Path) -> list[dict[str, Any]]:
    """The lines of a journal, in the order of arrival."""
    found = [json.loads(line) for path in journal.glob("*.jsonl") for line in path.read_text().splitlines()]
    return sorted(found, key=lambda line: int(line["id"]))


def mutations(lines: Sequence[Mapping[str, Any]]) -> list[Mutation]:
    """All wrong answers that can be made of these: one place for each field, the last that has a value of its own."""
    places: dict[tuple[str, str], tuple[bool, int, Path_, Any]] = {}
    for number, line in enumerate(lines):
        fields = _on_the_wire(line["api"], line["version"])
        for path, value in _walk(line["response"], ()):
            if not _is_the_brokers(path, fields):
                continue
            key = (line["api"], _named(path))
            speaks = value not in _DEFAULTS
            if key not in places or speaks >= places[key][0]:
                places[key] = (speaks, number, path, value)
    return [
        Mutation(api, field, how, number, path, wrong)
        for (api, field), (_, number, path, value) in places.items()
        for how, wrong in _wrong(path, value)
    ]


@cache
def _on_the_wire(api: str, version: int) -> frozenset[str] | None:
    """Names of the fields that this version of an answer has; None: kio does not know the version."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", api).lower()
    try:
        module = importlib.import_module(f"kio.schema.{name}.v{version}.response")
    except ImportError:
        return None
    classes = [each for each in vars(module).values() if dataclasses.is_dataclass(each)]
    return frozenset(python_name(field) for each in classes for field in dataclasses.fields(each))


def _is_the_brokers(path: Path_, fields: frozenset[str] | None) -> bool:
    """Whether a field came from the broker: the journal has later versions' too, and sums up records itself."""
    names = [part for part in path if isinstance(part, str)]
    if "records" in names:
        return names[-1] == "records" or "batches" in names[:-1]
    return fields is None or fields.issuperset(name.removesuffix("_ms") for name in names) or fields.issuperset(names)


def _walk(value: Any, path: Path_) -> Iterator[tuple[Path_, Any]]:
    if path:
        yield path, value
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _walk(part, (*path, name))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _walk(part, (*path, index))


def _named(path: Path_) -> str:
    return ".".join("[]" if isinstance(part, int) else part for part in path)


def _wrong(path: Path_, value: Any) -> Iterator[tuple[str, Any]]:
    if str(path[-1]).endswith("error_code") and isinstance(value, str):
        yield "foreign", FOREIGN
    elif isinstance(value, bool):
        yield "flipped", not value
    elif isinstance(value, int):
        yield "negative", -7
        if value > 1:
            yield "smaller", value // 2
        yield "larger", value + 1000
    elif isinstance(value, str):
        yield "another", value[::-1] if len(value) == 22 else f"{value}-x"
    elif isinstance(value, list) and value:
        yield "emptied", []
        yield "doubled", [*value, value[-1]]


def mutated(lines: Sequence[Mapping[str, Any]], mutation: Mutation) -> list[Mapping[str, Any]]:
    """The lines with one wrong answer."""
    wrong = copy.deepcopy(dict(lines[mutation.line]))
    at = wrong["response"]
    for part in mutation.path[:-1]:
        at = at[part]
    at[mutation.path[-1]] = mutation.value
    if mutation.how == "foreign":
        wrong["error"] = wrong["error"] or FOREIGN
        wrong["error_codes"] = [*wrong["error_codes"], 84]
    return [*lines[: mutation.line], wrong, *lines[mutation.line + 1 :]]


def as_text(line: Mapping[str, Any]) -> str:
    """A line as a broker writes it, of the run `_RUN`."""
    return json.dumps({**line, "run": "R"}, separators=(",", ":")) + "\n"


def found(data: Path, lines: Sequence[Mapping[str, Any]], made: Sequence[Mutation], scratch: Path) -> list[set[str]]:
    """The checks that find each wrong answer; the last set is that of the journal as it is."""
    scratch.mkdir(parents=True)
    sound = list(map(as_text, lines))
    with (scratch / "wire-R-000001.jsonl").open("w", encoding="utf-8") as file:
        for number, each in enumerate([*made, None]):
            texts = sound
            if each is not None:
                wrong = as_text(mutated(lines, each)[each.line])
                texts = [*sound[: each.line], wrong, *sound[each.line + 1 :]]
            file.writelines(text.replace(_RUN, f'"run":"R-{number:05d}"', 1) for text in texts)
    tables = DuckTables(str(data), str(scratch))
    tables.register()
    asked = [each for each in chosen(has=NEEDS) if "journal" in each.needs]
    names: list[set[str]] = [set() for _ in range(len(made) + 1)]
    for check in asked:
        rows = tables.engine.rows(check.sql)
        for run in set(rows.column("run").to_pylist()) if "run" in rows.column_names else ():
            names[int(run[2:])].add(check.name)
    tables.forget()
    return names
