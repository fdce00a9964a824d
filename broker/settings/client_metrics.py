"""Settings of a client metrics subscription (KIP-714, core C.3)."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Protocol

import re2

from broker.settings.definition_order import as_hashed
from broker.settings.model import Value
from broker.settings.tables import CLIENT_METRICS
from broker.settings.values import BLANKS, parse
from protocol.errors import ErrorCode, KafkaError
from protocol.java import split

MATCH_NAMES = frozenset(
    {
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)
IN_ORDER = ("metrics", "interval.ms", "match")
"""As Kafka defines them, which decides which one of several bad values is named."""
NAME_AND_REGEX = 2
NAMED_GROUP = re.compile(r"(?<!\\)\(\?<(?=[A-Za-z])")
"""As Java writes it."""
_OPTIONS = re2.Options()
_OPTIONS.log_errors = False


class Pattern(Protocol):
    """A pattern that was read."""

    def fullmatch(self, text: str) -> object | None:
        """Return something if all of the text matches."""
        ...


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Pattern:
    """Read a pattern of Java's, but for what only an engine that goes back can do (GAPS.md).

    Any client's id is matched, and one that a backtracking engine cannot decide would stop the process.

    Raises:
        re2.error: it is no pattern, or one with lookarounds or references back.
    """
    found: Pattern = re2.compile(NAMED_GROUP.sub("(?P<", pattern), _OPTIONS)
    return found


def effective(stored: Mapping[str, str]) -> dict[str, Value]:
    """The three settings of a subscription, set or default."""
    rows = [CLIENT_METRICS[name] for name in IN_ORDER]
    return {row.name: parse(row, stored[row.name]) if row.name in stored else row.default for row in rows}


def patterns(match: tuple[str, ...]) -> dict[str, Pattern]:
    """The pattern for each named property of a client; a later entry of the same name wins.

    Raises:
        KafkaError: INVALID_CONFIG for an entry that is not name=regex with a known name.
    """
    found: dict[str, Pattern] = {}
    for entry in match:
        parts = split(entry, "=")
        illegal = KafkaError(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {entry}")
        if len(parts) != NAME_AND_REGEX or (name := parts[0].strip(BLANKS)) not in MATCH_NAMES:
            raise illegal
        try:
            found[name] = _compiled(parts[1].strip(BLANKS))
        except re2.error:
            raise illegal from None
    return found


def validate(proposed: Mapping[str, str]) -> None:
    """Check all settings of a subscription together (ClientMetricsConfigs.validate).

    Raises:
        KafkaError: INVALID_REQUEST for an unknown name or an interval out of range, else INVALID_CONFIG.
    """
    for name in as_hashed(proposed):
        if name not in CLIENT_METRICS:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {name}")
    values = effective(proposed)
    interval_ms = values["interval.ms"]
    if not isinstance(interval_ms, int) or not 100 <= interval_ms <= 3_600_000:
        reason = "interval must be between 100 and 3600000 (1 hour)"
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Invalid value {interval_ms} for interval.ms, {reason}")
    match = values["match"]
    patterns(match if isinstance(match, tuple) else ())
