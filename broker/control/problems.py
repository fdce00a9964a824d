"""Errors of the control plane as RFC 9457 problem details: what is wrong, and what to send instead."""

from typing import Any


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
