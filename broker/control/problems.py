"""Errors of the control plane as RFC 9457 problem details: what is wrong, and what to send instead."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_MOST_NAMED = 16


class Problem(Exception):
    """Answered as ``application/problem+json``.

    404 for a name that is not there, 422 for a body or query that makes no sense (``field`` says where), 409 for a
    wish that cannot be fulfilled now.
    """

    def __init__(self, status: int, detail: str, *, field: str | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.field = status, detail, field

    def document(self) -> dict[str, Any]:
        """The problem document."""
        titles = {
            401: "Unauthorized",
            403: "Forbidden",
            404: "Not Found",
            405: "Method Not Allowed",
            409: "Conflict",
            422: "Unprocessable",
        }
        found: dict[str, Any] = {
            "type": "about:blank",
            "title": titles.get(self.status, "Error"),
            "status": self.status,
            "detail": self.detail,
        }
        if self.field is not None:
            found["field"] = self.field
        return found


def not_found(what: str) -> Problem:
    """A name that is not there."""
    return Problem(404, what)


def unprocessable(detail: str, field: str | None = None) -> Problem:
    """A body or query that makes no sense."""
    return Problem(422, detail, field=field)


def conflict(detail: str) -> Problem:
    """A wish that cannot be fulfilled in this state."""
    return Problem(409, detail)


def nearest(word: str, names: Iterable[str]) -> str:
    """``; did you mean X?``, or what there is, if it is not much."""
    known = list(names)
    found = get_close_matches(word.upper(), [name.upper() for name in known], n=1, cutoff=0.6)
    alike = [name for name in known if name.upper() in found]
    alike = alike or sorted((name for name in known if len(word) > 2 and word.upper() in name.upper()), key=len)
    if alike:
        return f"; did you mean {' or '.join(alike[:3])}?"
    return f"; known: {', '.join(known)}" if 0 < len(known) <= _MOST_NAMED else ""


def no_whole_number(name: str, value: Any, least: int) -> str:
    """What is wrong with a value that is no whole number, or too small a one; of durations also their unit."""
    what = f"{name!r} must be a whole number of at least {least}"
    if name != "ms" and not name.endswith("_ms"):
        return f"{what}, not {value!r}"
    said = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", value) if isinstance(value, str) else None
    meant = f": write {round(float(said[1]) * _UNITS_MS[said[2]])}" if said and said[2] in _UNITS_MS else ""
    return f"{what}, in milliseconds, not {value!r}{meant}"
