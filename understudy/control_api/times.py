"""Instants as people read them, the same everywhere: local time in ISO 8601 with milliseconds."""

from datetime import UTC, datetime

NAMES = frozenset(
    {"at_ms", "until_ms", "now_ms", "deadline_ms", "timestamp_ms", "last_timestamp_ms", "since_ms", "lock_until_ms"}
    | {"began_ms", "ended_ms"}
    | {"last_since_ms", "last_ended_ms"}
)
"""Fields of answers that are instants; other fields that end in _ms are durations."""
_LAST_MS = 253_402_214_400_000
"""Python's datetimes end with the year 9999; the last day is left to time zones."""


def local_time(ms: int) -> str:
    """Such as 2026-11-22T21:05:03.120+01:00; the number itself where no calendar has that time."""
    if not 0 <= ms < _LAST_MS:
        return str(ms)
    return (
        datetime.fromtimestamp(ms // 1000, UTC)
        .replace(microsecond=ms % 1000 * 1000)
        .astimezone()
        .isoformat(timespec="milliseconds")
    )
