"""What a Python client observes: each call of the scripts, with what came back or was raised, as lines of JSON.

With ``OBSERVE=1`` in the environment the scripts print them among their steps; ``tests/differential/clients.py``
compares those of two clusters. What depends on timing is printed so that timing does not show: calls that are repeated
until they show something count once, and of what a member reads, each partition's first offset is printed.
"""

import dataclasses
import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

T = TypeVar("T")
FACTORIES = {"join", "source", "transactor"}
"""Calls that return something to be observed as well."""
READING = {"poll"}
NOT_OBSERVED = {"assigned", "metadata"}
"""Which member has which partition is the assignor's draw of member ids; `metadata` is an opaque object."""


def plain(value: Any) -> Any:
    """A result as JSON can hold it; sets in their order, bytes as text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in sorted(value.items(), key=str)}
    if isinstance(value, set | frozenset):
        return sorted(map(plain, value), key=str)
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value if isinstance(value, str | int | float | bool | None) else type(value).__name__


class Observed:
    """Wraps a client (or its member, or its producer), and prints each call."""

    def __init__(self, inner: Any, name: str) -> None:
        self._inner, self._name = inner, name
        self._read: dict[int, int] = {}  # partition -> the first offset that was read

    def __getattr__(self, call: str) -> Any:
        """Wrap a method so that its result is printed; return anything else as it is."""
        attribute = getattr(self._inner, call)
        if not callable(attribute) or call in NOT_OBSERVED:
            return attribute
        return lambda *arguments, **more: self._called(call, attribute, arguments, more)

    def _called(self, call: str, work: Callable[..., Any], arguments: tuple[Any, ...], more: dict[str, Any]) -> Any:
        if call == "close" and self._read:
            print_call(f"{self._name}.read", {"first": {index: self._read[index] for index in sorted(self._read)}})
        arguments = tuple(argument._inner if isinstance(argument, Observed) else argument for argument in arguments)
        try:
            result = work(*arguments, **more)
        except BaseException as error:
            print_call(f"{self._name}.{call}", {"raised": type(error).__name__, "message": str(error)[:300]})
            raise
        if call in READING:
            for record in result:
                index, offset = (record.partition, record.offset) if hasattr(record, "offset") else record[:2]
                self._read.setdefault(index, offset)
            return result
        if call in FACTORIES:
            print_call(f"{self._name}.{call}", {"returned": call})
            return Observed(result, call)
        print_call(f"{self._name}.{call}", {"returned": plain(result)})
        return result


def print_call(call: str, what: Mapping[str, Any]) -> None:
    """Print one call as a line of JSON."""
    sys.stdout.write(json.dumps({"call": call, **what}) + "\n")


def observed(client: T) -> T:
    """The client, wrapped if ``OBSERVE`` is set."""
    return Observed(client, "client") if os.environ.get("OBSERVE") else client  # type: ignore[return-value]
