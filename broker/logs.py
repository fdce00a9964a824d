"""Logging by structlog to stderr, as text or as JSON, from a level on.

structlog is imported for the first event, or a moment after the start: most servers have none before their first
client, and it takes a tenth of the time of a start.
"""

import logging
import sys
from collections.abc import Callable
from typing import Any

from control_api.times import local_time

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}  # the numbers of Python's logging

_waiting: list[Callable[[], None]] = []
"""The configuration, until the first event."""


class Logger:
    """The logger of a module; each level is a method, as those of structlog's loggers."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, level: str) -> Any:
        import structlog  # noqa: PLC0415 - see above

        prepare_logging()
        return getattr(structlog.get_logger(self._name), level)


def in_all_events(**values: Any) -> None:
    """Add values to all further events of the current task."""
    import structlog  # noqa: PLC0415

    structlog.contextvars.bind_contextvars(**values)


def configure_logging(log_format: str, level: str) -> None:
    """Configure logging, once per process. ``log_format`` is ``console`` or ``json``."""
    _waiting[:] = [lambda: _configure(log_format, LEVELS[level])]
    logging.basicConfig(stream=sys.stderr, level=LEVELS[level])


def prepare_logging() -> None:
    """Import structlog and configure it now: an event may come when no file can be opened any more."""
    import structlog  # noqa: F401, PLC0415

    while _waiting:
        _waiting.pop()()


def _configure(log_format: str, level: int) -> None:
    import structlog  # noqa: PLC0415
    from structlog.tracebacks import ExceptionDictTransformer  # noqa: PLC0415

    if log_format == "json":
        renderer: Any = structlog.processors.JSONRenderer()
        stamps: list[Any] = [
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False)),  # locals hold secrets
        ]
    else:
        plain_traceback = structlog.dev.plain_traceback
        renderer = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain_traceback)
        stamps = [structlog.processors.TimeStamper(fmt=None), _for_people]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            *stamps,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


def _for_people(_logger: Any, _method: str, event: dict[str, Any]) -> dict[str, Any]:
    """Replace the timestamp, which is in seconds, by local time as text."""
    event["timestamp"] = local_time(int(event["timestamp"] * 1000))
    return event
