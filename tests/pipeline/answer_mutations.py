"""Wrong answers of a broker, made of the right ones of a journal: every field of every API's answer, changed.

The ways follow from a field's type in Kafka's schema: a number that is negative, smaller, larger, one less, one more;
another name or id, one that the same field has in another answer; a text that is empty or null; an error of
another API, one where there was none, none where there was one; a flag that is flipped; a list that is empty, has an
element twice, or has lost its last one. Which of them an audit finds is not considered here.
"""

import copy
import dataclasses
import importlib
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args, get_origin, get_type_hints

from pipeline.answers.calls import ZERO_ID
from protocol.errors import ErrorCode
from tools.schema_fields import python_name

Path_ = tuple[str | int, ...]
Line = Mapping[str, Any]
FOREIGN: Final = "ELECTION_NOT_NEEDED"
"""An error of ElectLeaders alone."""
REFUSALS: Final = ("UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_MEMBER_ID", "INVALID_PRODUCER_EPOCH", "INVALID_REQUEST")
"""Errors of many APIs, for answers without one."""
_DEFAULTS: Final[tuple[Any, ...]] = (None, "", 0, -1, "NONE", False, [], ZERO_ID)


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

    def __str__(self) -> str:
        return f"{self.api} {self.field} {self.how}"


class _Place(NamedTuple):
    line: int
    path: Path_
    value: Any


def lines_of(journal: Path) -> list[dict[str, Any]]:
    """The lines of a journal, in the order of arrival."""
    entries = [json.loads(line) for path in journal.glob("*.jsonl") for line in path.read_text().splitlines()]
    return sorted(entries, key=lambda line: int(line["id"]))


def mutations(lines: Sequence[Line], *, places: int = 1) -> list[Mutation]:
    """All wrong answers that can be made of these: of each field the last value that is not a default.

    Args:
        lines: of a journal.
        places: 2: also the first such value of each field.
    """
    by_field: dict[tuple[str, str], list[_Place]] = defaultdict(list)
    for number, line in enumerate(lines):
        schema = _schema(line["api"], line["version"])
        for path, value in _walk(line["response"], ()):
            if _is_the_brokers(path, schema):
                by_field[line["api"], _named(path)].append(_Place(number, path, value))
    results = []
    for (api, field), all_ in by_field.items():
        speaking = [each for each in all_ if each.value not in _DEFAULTS] or all_
        for place in speaking[-1:] + (speaking[:1] if places > 1 and len(speaking) > 1 else []):
            others = [each.value for each in all_ if type(each.value) is type(place.value)]
            schema = _schema(api, lines[place.line]["version"])
            is_nullable = schema is not None and field in schema.nullable
            for how, wrong in _wrong(place, others, is_nullable=is_nullable):
                results.append(Mutation(api, field, how, place.line, place.path, wrong))
    return results


class _Schema(NamedTuple):
    """The fields of a version of an answer, as paths that `_named` makes."""

    fields: frozenset[str]
    nullable: frozenset[str]


@cache
def _schema(api: str, version: int) -> _Schema | None:
    """None: kio does not know the version."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", api).lower()
    try:
        module = importlib.import_module(f"kio.schema.{name}.v{version}.response")
    except ImportError:
        return None
    paths = list(_paths(vars(module)[f"{api}Response"], ""))
    return _Schema(frozenset(path for path, _ in paths), frozenset(path for path, is_nullable in paths if is_nullable))


def _paths(cls: type[Any], above: str) -> Iterator[tuple[str, bool]]:
    """Each field of a class and of those in it, and whether it may be null."""
    kinds = get_type_hints(cls)
    for field in dataclasses.fields(cls):
        kind = kinds[field.name]
        parts = get_args(kind)
        is_nullable = type(None) in parts
        path = f"{above}{python_name(field)}"
        yield path, is_nullable
        for inner in (kind, *parts, *(each for part in parts for each in get_args(part))):
            if dataclasses.is_dataclass(inner) and isinstance(inner, type):
                is_list = inner is not kind and tuple in {get_origin(each) for each in (kind, *parts)}
                yield from _paths(inner, f"{path}.[]." if is_list else f"{path}.")


def _is_the_brokers(path: Path_, schema: _Schema | None) -> bool:
    """Whether a field came from the broker: the journal has later versions' too, and sums up records itself."""
    names = [part for part in path if isinstance(part, str)]
    if "records" in names:
        return names[-1] == "records" or "batches" in names[:-1]
    return schema is None or _named(path[:-1] if isinstance(path[-1], int) else path) in schema.fields


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


def _wrong(place: _Place, others: Sequence[Any], *, is_nullable: bool) -> Iterator[tuple[str, Any]]:
    """What can be wrong in a field: how, and the value."""
    value = place.value
    if str(place.path[-1]).endswith("error_code") and isinstance(value, str):
        yield "foreign", FOREIGN
        yield from ((f"refused: {name}", name) for name in REFUSALS) if value == "NONE" else (("accepted", "NONE"),)
        return
    yield from _of_kind(value)
    if value is not None and is_nullable:
        yield "null", ZERO_ID if isinstance(value, str) and len(value) == len(ZERO_ID) else None
    if isinstance(value, int | str) and not isinstance(value, bool):
        exchanged = [each for each in others if each != value and each not in _DEFAULTS]
        if exchanged:
            yield "of another answer", exchanged[-1]


def _of_kind(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, bool):
        yield "flipped", not value
    elif isinstance(value, int):
        yield from _wrong_numbers(value)
    elif isinstance(value, str):
        yield "another", value[::-1] if len(value) == 22 else f"{value}-x"
        if value:
            yield "empty", ""
    elif isinstance(value, list) and value:
        yield "emptied", []
        yield "doubled", [*value, value[-1]]
        if len(value) > 1:
            yield "shortened", value[:-1]


def _wrong_numbers(value: int) -> Iterator[tuple[str, int]]:
    yield "negative", -7
    if value > 1:
        yield "smaller", value // 2
    if value > 2:
        yield "one less", value - 1
    yield "one more", value + 1
    yield "larger", value + 1000


def mutated(lines: Sequence[Line], mutation: Mutation) -> dict[str, Any]:
    """The line of a wrong answer."""
    wrong = copy.deepcopy(dict(lines[mutation.line]))
    at = wrong["response"]
    for part in mutation.path[:-1]:
        at = at[part]
    at[mutation.path[-1]] = mutation.value
    if str(mutation.path[-1]).endswith("error_code"):
        codes = dict.fromkeys(
            value
            for path, value in _walk(wrong["response"], ())
            if str(path[-1]).endswith("error_code") and isinstance(value, str) and value != "NONE"
        )
        wrong["error"] = next(iter(codes), None)
        wrong["error_codes"] = [int(ErrorCode[code]) for code in codes]
    return wrong


def as_text(line: Line) -> str:
    """A line as a broker writes it, of a run `R`."""
    return json.dumps({**line, "run": "R"}, separators=(",", ":")) + "\n"
