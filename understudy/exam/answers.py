"""Validates a driver's answers, so that an invalid one is a failure of the driver, and does not end the exam."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final


def problem_of(command: str, result: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the result of a command, in one sentence; None if it is valid."""
    return next(_PROBLEMS[command](result), None) if command in _PROBLEMS else None


def _hello(result: Mapping[str, Any]) -> Iterator[str]:
    capabilities = result.get("capabilities", [])
    if not isinstance(capabilities, list) or not all(isinstance(capability, str) for capability in capabilities):
        yield f"capabilities has to be a list of strings, not {capabilities!r:.200}"


def _flush(result: Mapping[str, Any]) -> Iterator[str]:
    if not _is_number(result.get("pending", 0)):
        yield f"pending has to be an integer, not {result['pending']!r:.200}"
    for outcome in _rows(result, "outcomes"):
        if isinstance(outcome, str):
            yield outcome
        elif not _is_number(outcome.get("id")):
            yield f"an outcome needs the id of a record, an integer, not {outcome!r:.200}"
        elif "error" not in outcome and not ("offset" in outcome and _is_number(outcome["offset"] or 0)):
            yield f"an outcome needs an offset, an integer, or an error, not {outcome!r:.200}"


def _poll(result: Mapping[str, Any]) -> Iterator[str]:
    if not isinstance(result.get("errors", []), list):
        yield f"errors has to be a list, not {result['errors']!r:.200}"
    for record in _rows(result, "records"):
        if isinstance(record, str):
            yield record
        elif not _is_place(record) or not _is_number(record.get("offset")) or "value" not in record:
            yield f"a record needs topic, partition, offset and value, not {record!r:.200}"


def _assignment(result: Mapping[str, Any]) -> Iterator[str]:
    if "partitions" not in result:
        yield "the result needs partitions"
    for partition in _rows(result, "partitions"):
        if isinstance(partition, str):
            yield partition
        elif not _is_place(partition):
            yield f"a partition needs topic and partition, not {partition!r:.200}"


def _rows(result: Mapping[str, Any], name: str) -> Iterator[Mapping[str, Any] | str]:
    """Return the objects in a list, or a sentence about what is not one."""
    rows = result.get(name, [])
    if not isinstance(rows, list):
        yield f"{name} has to be a list, not {rows!r:.200}"
        return
    for row in rows:
        yield row if isinstance(row, dict) else f"{name} has to be a list of objects, not of {row!r:.200}"


def _is_place(row: Mapping[str, Any]) -> bool:
    return isinstance(row.get("topic"), str) and _is_number(row.get("partition"))


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_PROBLEMS: Final[Mapping[str, Callable[[Mapping[str, Any]], Iterator[str]]]] = {
    "hello": _hello,
    "flush": _flush,
    "poll": _poll,
    "assignment": _assignment,
}
