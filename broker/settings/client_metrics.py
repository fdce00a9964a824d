"""Configs of a client metrics subscription (KIP-714, core C.3)."""

from collections.abc import Mapping

from broker.settings.definition_order import as_hashed
from broker.settings.model import Value
from broker.settings.tables import CLIENT_METRICS
from broker.settings.values import BLANKS, parse
from protocol.errors import ErrorCode, KafkaError
from protocol.java import split
from protocol.regular_expressions import InvalidPattern, Pattern, compiled

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
"""The order of Kafka's definitions, which decides which of several invalid values is reported."""
NAME_AND_REGEX = 2


def effective(stored: Mapping[str, str]) -> dict[str, Value]:
    """Return the three configs of a subscription, set or default."""
    rows = [CLIENT_METRICS[name] for name in IN_ORDER]
    return {row.name: parse(row, stored[row.name]) if row.name in stored else row.default for row in rows}


def patterns(match: tuple[str, ...]) -> dict[str, Pattern]:
    """Return the pattern for each property of a client; the last entry of a name is used.

    Raises:
        KafkaError: INVALID_CONFIG for an entry that is not name=regex with a known name.
    """
    patterns_by_name: dict[str, Pattern] = {}
    for entry in match:
        parts = split(entry, "=")
        illegal = KafkaError(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {entry}")
        if len(parts) != NAME_AND_REGEX or (name := parts[0].strip(BLANKS)) not in MATCH_NAMES:
            raise illegal
        try:  # not Python's re: on clients' ids, backtracking could block the process
            patterns_by_name[name] = compiled(parts[1].strip(BLANKS))
        except InvalidPattern:
            raise illegal from None
    return patterns_by_name


def validate(proposed: Mapping[str, str]) -> None:
    """Validate all configs of a subscription together (ClientMetricsConfigs.validate).

    Raises:
        KafkaError: INVALID_REQUEST for an unknown name or an interval out of range, else INVALID_CONFIG.
    """
    for name in as_hashed(proposed):
        if name not in CLIENT_METRICS:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {name}")
    values = effective(proposed)
    interval_ms = values["interval.ms"]
    # ClientMetricsConfigs.MIN_INTERVAL_MS and MAX_INTERVAL_MS.
    if not isinstance(interval_ms, int) or not 100 <= interval_ms <= 3_600_000:
        reason = "interval must be between 100 and 3600000 (1 hour)"
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Invalid value {interval_ms} for interval.ms, {reason}")
    match = values["match"]
    patterns(match if isinstance(match, tuple) else ())
