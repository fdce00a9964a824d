"""What can go wrong between a test and its cluster."""


class UnderstudyError(Exception):
    """Anything that this package raises."""


class StartError(UnderstudyError):
    """The server's process did not come up; the message ends with the last lines of its log."""


class Unreachable(UnderstudyError):
    """No control plane answers at the address."""


class ControlError(UnderstudyError):
    """The control plane refused (RFC 9457): 404 no such thing, 409 impossible now, 422 malformed.

    `field` names the offending field of the body where there is one.
    """

    def __init__(self, status: int, title: str, detail: str = "", field: str | None = None) -> None:
        place = f" (field {field})" if field else ""
        super().__init__(f"{detail or title}{place}")
        self.status, self.title, self.detail, self.field = status, title, detail, field


class UnmetFaults(UnderstudyError):
    """Faults were set that no request met."""
