"""The format of times in all outputs: local time in ISO 8601 with milliseconds."""

from datetime import UTC, datetime

NAMES = frozenset(
    {"at_ms", "until_ms", "now_ms", "deadline_ms", "timestamp_ms", "last_timestamp_ms", "since_ms", "lock_until_ms"}
    | {"began_ms", "ended_ms", "committed_ms"}
    | {"last_since_ms", "last_ended_ms"}
)
"""The fields of answers that are points in time; other fields that end in _ms are durations."""
_LAST_MS = 253_402_214_400_000
"""The limit of Python's datetimes, the year 9999, minus a day for time zones."""


def local_time(ms: int) -> str:
    """Format a time as 2026-11-22T21:05:03.120+01:00; the number itself if it is out of range."""
    if not 0 <= ms < _LAST_MS:
        return str(ms)
    return (
        datetime.fromtimestamp(ms // 1000, UTC)
        .replace(microsecond=ms % 1000 * 1000)
        .astimezone()
        .isoformat(timespec="milliseconds")
    )
