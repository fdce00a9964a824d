"""The log levels of one broker, as the BROKER_LOGGER resource reports and sets them (core C.5).

They are lost at a restart. A logger without its own level has that of root.
"""

from broker.settings.model import Operation
from protocol.errors import ErrorCode, KafkaError

ROOT = "root"
LEVELS = ("DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN")

# A broker's loggers: one per package.
NAMES = (ROOT, "broker", "protocol", "storage")


class Loggers:
    """The levels of all loggers. `level(name)` is the effective one."""

    def __init__(self, root: str = "INFO") -> None:
        self._own: dict[str, str] = {ROOT: root}

    def level(self, name: str) -> str:
        """Return the effective level of a logger."""
        return self._own.get(name, self._own[ROOT])

    def levels(self) -> dict[str, str]:
        """Return all loggers with their effective levels."""
        return {name: self.level(name) for name in NAMES}

    def alter(self, name: str, operation: int, value: str | None) -> None:
        """Set or delete one level, which `check` has validated."""
        if operation == Operation.SET and value is not None:
            self._own[name] = value
        else:
            self._own.pop(name, None)

    @staticmethod
    def check(name: str, operation: int, value: str | None, *, names_unknown: bool = True) -> None:
        """Check whether a level may be set or deleted (core C.5).

        ``names_unknown``: an unknown operation is named in the error. The operation comes first, as in
        RuntimeLoggerManager.validateLogLevelConfigs.

        Raises:
            KafkaError: INVALID_CONFIG for an unknown logger or level, INVALID_REQUEST for an operation that is never
                allowed, UNKNOWN_SERVER_ERROR for an unknown operation, unless ``names_unknown``.
        """
        if operation not in {Operation.SET, Operation.DELETE}:
            is_known = operation in set(Operation)
            if not is_known and not names_unknown:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # null in Kafka 4.3, which fails on it
            kind = f"{Operation(operation).name} operation" if is_known else f"Unknown operation type {operation}"
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
