"""What a Python client observes: each call of the scripts, with what came back or was raised, as lines of JSON.

With ``OBSERVE=1`` in the environment the scripts print them among their steps; ``tests/differential/clients.py`` holds
those of two clusters against each other. What hangs on timing is told so that timing does not show: calls that are
repeated until they show something count once, and of what a member reads, each partition's first offset is told.
"""

import dataclasses
import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

T = TypeVar("T")
MADE = {"join", "source", "transactor"}
"""Calls that return something to be observed as well."""
READING = {"poll"}
UNTOLD = {"assigned", "metadata"}
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
    """Stands before a client (or its member, or its producer), and tells of each call."""

    def __init__(self, inner: Any, name: str) -> None:
        self._inner, self._name = inner, name
        self._read: dict[int, int] = {}  # partition -> the first offset that was read

    def __getattr__(self, call: str) -> Any:
        """A call that tells what came of it; anything else as it is."""
        found = getattr(self._inner, call)
        if not callable(found) or call in UNTOLD:
            return found
        return lambda *words, **more: self._called(call, found, words, more)

    def _called(self, call: str, work: Callable[..., Any], words: tuple[Any, ...], more: dict[str, Any]) -> Any:
        if call == "close" and self._read:
            tell(f"{self._name}.read", {"first": {index: self._read[index] for index in sorted(self._read)}})
        words = tuple(word._inner if isinstance(word, Observed) else word for word in words)
        try:
            result = work(*words, **more)
        except BaseException as error:
            tell(f"{self._name}.{call}", {"raised": type(error).__name__, "told": str(error)[:300]})
            raise
        if call in READING:
            for record in result:
                index, offset = (record.partition, record.offset) if hasattr(record, "offset") else record[:2]
                self._read.setdefault(index, offset)
            return result
        if call in MADE:
            tell(f"{self._name}.{call}", {"returned": call})
            return Observed(result, call)
        tell(f"{self._name}.{call}", {"returned": plain(result)})
        return result


def tell(call: str, what: Mapping[str, Any]) -> None:
    """Print one call."""
    sys.stdout.write(json.dumps({"call": call, **what}) + "\n")


def observed(client: T) -> T:
    """The client, observed if somebody wants to know."""
    return Observed(client, "client") if os.environ.get("OBSERVE") else client  # type: ignore[return-value]
