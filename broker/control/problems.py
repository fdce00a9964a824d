"""Errors of the control plane as RFC 9457 problem details: what is wrong, and what to send instead."""


class Problem(Exception):
    """An error response of the control plane, sent as ``application/problem+json``.

    404 for an unknown name, 422 for an invalid body or query (``field`` names the part), 409 for a conflict with the
    current state, 410 for a cluster that has ended.
    """

    def __init__(self, status: int, detail: str, *, field: str | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.field = status, detail, field

    def document(self) -> dict[str, object]:
        """Return the problem document."""
        titles = {
            401: "Unauthorized",
            403: "Forbidden",
            404: "Not Found",
            405: "Method Not Allowed",
            409: "Conflict",
            410: "Gone",
            422: "Unprocessable",
        }
        document: dict[str, object] = {
            "type": "about:blank",
            "title": titles.get(self.status, "Error"),
            "status": self.status,
            "detail": self.detail,
        }
        if self.field is not None:
            document["field"] = self.field
        return document


def not_found(what: str) -> Problem:
    """Build a 404 for a name that does not exist."""
    return Problem(404, what)


def unprocessable(detail: str, field: str | None = None) -> Problem:
    """Build a 422 for an invalid body or query."""
    return Problem(422, detail, field=field)


def conflict(detail: str) -> Problem:
    """Build a 409 for a request that conflicts with the current state."""
    return Problem(409, detail)
