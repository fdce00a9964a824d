"""Logging by structlog to stderr, as text or as JSON, from a level on."""

import logging
import sys
from typing import Any

import structlog
from structlog.tracebacks import ExceptionDictTransformer

from control_api.times import local_time

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}


def configure_logging(log_format: str, level: str) -> None:
    """Configure logging, once per process. ``log_format`` is ``console`` or ``json``."""
    if log_format == "json":
        renderer: Any = structlog.processors.JSONRenderer()
        stamps: list[Any] = [
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False)),  # locals hold secrets
        ]
    else:
        renderer = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain_traceback)
        stamps = [structlog.processors.TimeStamper(fmt=None), _for_people]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            *stamps,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(stream=sys.stderr, level=LEVELS[level])


def _for_people(_logger: Any, _method: str, event: dict[str, Any]) -> dict[str, Any]:
    """Replace the timestamp, which is in seconds, by local time as text."""
    event["timestamp"] = local_time(int(event["timestamp"] * 1000))
    return event


plain_traceback = structlog.dev.plain_traceback
