"""The log levels of one broker, as the BROKER_LOGGER resource shows and sets them (core C.5).

They are not remembered across restarts. A logger without a level of its own has the level of its parent, in the end
that of root.
"""

from broker.settings.model import Operation
from protocol.errors import ErrorCode, KafkaError

ROOT = "root"
LEVELS = ("DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN")

# A broker's loggers: one for each package.
NAMES = (ROOT, "broker", "protocol", "storage")


class Loggers:
    """Named levels. `level(name)` is what counts."""

    def __init__(self, root: str = "INFO") -> None:
        self._own: dict[str, str] = {ROOT: root}

    def level(self, name: str) -> str:
        """The effective level of a logger."""
        return self._own.get(name, self._own[ROOT])

    def levels(self) -> dict[str, str]:
        """All loggers with their effective levels."""
        return {name: self.level(name) for name in NAMES}

    def alter(self, name: str, operation: int, value: str | None) -> None:
        """Set or delete one level, which `check` has allowed."""
        if operation == Operation.SET and value is not None:
            self._own[name] = value
        else:
            self._own.pop(name, None)

    @staticmethod
    def check(name: str, operation: int, value: str | None, *, names_unknown: bool = True) -> None:
        """Whether a level may be set or deleted. ``names_unknown`` is whether an unknown operation is named.

        Raises:
            KafkaError: INVALID_CONFIG for an unknown logger or level, INVALID_REQUEST for what is never allowed,
                UNKNOWN_SERVER_ERROR for an unknown operation that is not named.
        """
        if operation not in {Operation.SET, Operation.DELETE}:
            known = operation in set(Operation)
            if not known and not names_unknown:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # null to Kafka 4.3, which fails on it
            kind = f"{Operation(operation).name} operation" if known else f"Unknown operation type {operation}"
            reason = f"{kind} is not allowed for the BROKER_LOGGER resource"
            raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
        if name not in NAMES:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
        if operation == Operation.DELETE:
            if name == ROOT:
                reason = "Removing the log level of the root logger is not allowed"
                raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
        elif value not in LEVELS:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"Cannot set the log level of {name} to {value} as it is not a supported log level. "
                f"Valid log levels are {', '.join(LEVELS)}",
            )
