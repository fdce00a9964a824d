"""Exceptions of the Python client."""


class UnderstudyError(Exception):
    """Base class of all exceptions of this package."""


class StartError(UnderstudyError):
    """The server process did not start; the message ends with the last lines of its log."""


class Unreachable(UnderstudyError):
    """No control plane answers at the address."""


class ControlError(UnderstudyError):
    """The control plane refused (RFC 9457): 404 no such thing, 409 impossible now, 422 malformed.

    `field` names the offending field of the body, if there is one.
    """

    def __init__(self, status: int, title: str, detail: str = "", field: str | None = None) -> None:
        place = f" (field {field})" if field else ""
        super().__init__(f"{detail or title}{place}")
        self.status, self.title, self.detail, self.field = status, title, detail, field


class UnmetFaults(UnderstudyError):
    """Faults were added that no request matched."""


class ConformanceError(UnderstudyError):
    """The conformance of clients cannot be examined: what it needs is not installed, or there is no journal."""
