"""Defaults of broker settings that changed: what they were up to a release, that one included.

Seen on brokers of both sides (`tests/releases`).
"""

from collections.abc import Mapping
from typing import Final

_MOST = "9223372036854775807"

DEFAULTS: Final[Mapping[str, Mapping[str, str]]] = {
    "group.max.session.timeout.ms": {"2.2": "300000"},
    "log.message.timestamp.after.max.ms": {"3.9": _MOST},
    "message.max.bytes": {"2.4": "1000012"},
    "offsets.retention.minutes": {"1.1": "1440"},
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": {"2.4": "60000"},
}
