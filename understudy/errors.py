"""Exceptions of the Python client."""


class UnderstudyError(Exception):
    """Base class of all exceptions of this package."""


class StartError(UnderstudyError):
    """The server process did not start; the message ends with the last lines of its log."""


class Unreachable(UnderstudyError):
    """No control plane answers at this address."""


class ControlError(UnderstudyError):
    """The control plane rejected a request (RFC 9457): 404 not found, 409 not possible in this state, 422 invalid.

    `field` names the invalid field of the body, if there is one.
    """

    def __init__(self, status: int, title: str, detail: str = "", field: str | None = None) -> None:
        place = f" (field {field})" if field else ""
        super().__init__(f"{detail or title}{place}")
        self.status, self.title, self.detail, self.field = status, title, detail, field


class UnmetFaults(UnderstudyError):
    """Faults were added that matched no request."""


class ConformanceError(UnderstudyError):
    """Clients' conformance cannot be examined: a package is not installed, or there is no journal."""
