"""What a library observes: each call of a script, with what came back or was raised, and the step that it belongs to.

``tests/differential/clients.py`` compares those of two clusters. What depends on timing is noted so that timing does
not show: calls that are repeated until they show something count once, and what a member of a group reads meanwhile
is left to the steps, which judge it.
"""

import dataclasses
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from understudy.exam.driver import NotSupported

T = TypeVar("T")
FACTORIES = {"join", "source", "transactor"}
"""Calls that return something to be observed as well."""
NOT_OBSERVED = {"assigned", "poll"}
"""Which member has which partition is the assignor's draw of member ids; what a poll returns is timing."""


class Report:
    """The lines of one run: its steps, and the calls before each."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.stderr = ""

    def call(self, name: str, what: Mapping[str, Any]) -> None:
        """Note one call."""
        self.lines.append({"call": name, **what})

    def step(self, name: str, work: Callable[[], object]) -> None:
        """Play one step, and note whether it passed."""
        began = time.monotonic()
        line: dict[str, Any] = {"step": name, "ok": False}
        try:
            line["detail"] = work() or ""
            line["ok"] = True
        except NotSupported as reason:
            line["detail"] = f"unsupported: {reason}"
        except Exception as error:  # any error of a library is what the step reports  # noqa: BLE001
            line["detail"] = f"{type(error).__name__}: {error}"[:1500]
            line["trace"] = traceback.format_exc()
        line["ms"] = round((time.monotonic() - began) * 1000)
        self.lines.append(line)


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
    """Wraps a client (or its member, or its producer), and notes each call."""

    def __init__(self, inner: Any, name: str, report: Report) -> None:
        self._inner, self._name, self._report = inner, name, report

    def __getattr__(self, call: str) -> Any:
        """Wrap a method so that its result is noted; return anything else as it is."""
        attribute = getattr(self._inner, call)
        if not callable(attribute) or call in NOT_OBSERVED:
            return attribute
        return lambda *arguments, **more: self._called(call, attribute, arguments, more)

    def _called(self, call: str, work: Callable[..., Any], arguments: tuple[Any, ...], more: dict[str, Any]) -> Any:
        arguments = tuple(argument._inner if isinstance(argument, Observed) else argument for argument in arguments)
        try:
            result = work(*arguments, **more)
        except BaseException as error:
            self._report.call(f"{self._name}.{call}", {"raised": type(error).__name__, "message": str(error)[:300]})
            raise
        if call in FACTORIES:
            self._report.call(f"{self._name}.{call}", {"returned": call})
            return Observed(result, call, self._report)
        self._report.call(f"{self._name}.{call}", {"returned": plain(result)})
        return result


def observed(client: T, report: Report) -> T:
    """The client, with its calls noted."""
    return Observed(client, "client", report)  # type: ignore[return-value]
