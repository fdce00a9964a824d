"""Log levels as a resource (core C.5, CFG-14)."""

import pytest

from broker.settings import Operation
from broker.settings.loggers import Loggers
from protocol.errors import ErrorCode, KafkaError

SUPPORTED = "it is not a supported log level. Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN"


@pytest.mark.parametrize(
    ("name", "operation", "value", "code", "message"),
    [
        ("root", 0, "LOUD", ErrorCode.INVALID_CONFIG, f"Cannot set the log level of root to LOUD as {SUPPORTED}"),
        ("root", 0, "info", ErrorCode.INVALID_CONFIG, f"Cannot set the log level of root to info as {SUPPORTED}"),
        ("nosuch", 0, "LOUD", ErrorCode.INVALID_CONFIG, "Logger nosuch does not exist!"),
        ("nosuch", 1, None, ErrorCode.INVALID_CONFIG, "Logger nosuch does not exist!"),
        ("root", 1, None, ErrorCode.INVALID_REQUEST, "Removing the log level of the root logger is not allowed"),
        (
            "nosuch",
            2,
            "INFO",
            ErrorCode.INVALID_REQUEST,
            "APPEND operation is not allowed for the BROKER_LOGGER resource",
        ),
        (
            "root",
            9,
            "INFO",
            ErrorCode.INVALID_REQUEST,
            "Unknown operation type 9 is not allowed for the BROKER_LOGGER resource",
        ),
    ],
)
def test_CFG_14_what_a_logger_is_refused(
    name: str, operation: int, value: str | None, code: ErrorCode, message: str | None
) -> None:
    """Unknown loggers and levels with 40, what is never allowed with 42."""
    with pytest.raises(KafkaError) as refusal:
        Loggers.check(name, operation, value)
    assert (refusal.value.code, refusal.value.message) == (code, message)


def test_up_to_4_3_an_unknown_operation_is_an_unexpected_error() -> None:
    """Nothing but -1: its number is null to a broker of 4.3.1."""
    with pytest.raises(KafkaError) as refusal:
        Loggers.check("root", 9, "INFO", names_unknown=False)
    assert (refusal.value.code, refusal.value.message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)


def test_a_logger_without_a_level_has_that_of_root() -> None:
    """And has it again once its own is deleted."""
    loggers = Loggers()
    loggers.alter("root", Operation.SET, "WARN")
    loggers.alter("broker", Operation.SET, "TRACE")
    assert loggers.levels() == {"root": "WARN", "broker": "TRACE", "protocol": "WARN", "storage": "WARN"}
    loggers.alter("broker", Operation.DELETE, None)
    assert loggers.level("broker") == "WARN"
