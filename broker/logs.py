"""structlog, to stderr: for people or as JSON, from a level on."""

import logging
import sys
from typing import Any

import structlog

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}


def configure_logging(log_format: str, level: str) -> None:
    """Set up once per process. ``log_format`` is ``console`` or ``json``."""
    if log_format == "json":
        renderer: Any = structlog.processors.JSONRenderer()
        traces: list[Any] = [structlog.processors.dict_tracebacks]
    else:
        renderer = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain_traceback)
        traces = []
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            *traces,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(stream=sys.stderr, level=LEVELS[level])


plain_traceback = structlog.dev.plain_traceback
