"""Producer rules that depend on the broker's release and settings, for all its logs (transactions D.4)."""

from dataclasses import dataclass
from typing import Final

from protocol.errors import ErrorCode
from storage.append_info import Rule

REMEMBERED_BATCHES: Final = 5
"""Number of batches retained per producer, which can be recognised as duplicates.

An idempotent client has at most five requests in flight (ProducerStateEntry.NUM_BATCHES_TO_RETAIN, KAFKA-5494).
"""


_KIP_98, _KIP_360, _KIP_890 = "KIP-98", "KIP-360", "KIP-890"
S1: Final = Rule("transactions D.4 S1", _KIP_98)
S2: Final = Rule("transactions D.4 S2", _KIP_890)
S3: Final = Rule("transactions D.4 S3", _KIP_890)
S4: Final = Rule("transactions D.4 S4", _KIP_98)
S5: Final = Rule("transactions D.4 S5", _KIP_890)
S6: Final = Rule("transactions D.4 S6", _KIP_890)
S7: Final = Rule("transactions D.4 S7", _KIP_360)
S8: Final = Rule("transactions D.4 S8", _KIP_98)
S9: Final = Rule("transactions D.4 S9", _KIP_360)
S10: Final = Rule("transactions D.4 S10", _KIP_98)
M0: Final = Rule("transactions D.6 M0", "KIP-1228")
M1: Final = Rule("transactions D.6 M1", _KIP_98)
M2: Final = Rule("transactions D.6 M2", "KIP-1228")
M3: Final = Rule("transactions D.6 M3", _KIP_98)
EXPIRED: Final = Rule("transactions D.7", "KIP-854")
"""Rule by which a partition removes a producer that was idle for producer.id.expiration.ms."""
UNKNOWN_BEFORE_360: Final = Rule(S9.rule, "before KIP-360")


@dataclass(slots=True)
class ProducerRules:
    """Rules that may change while logs are open; all logs share the instance in their context.

    Attributes:
        verification: a batch that begins a transaction here must come from a producer that was verified (KIP-890,
            transactions D.4 S3).
        begins_at_zero: under transaction.version 2 that batch has sequence 0, if the producer is unknown here
            (transactions D.4 S5).
        unknown: the error for an unknown producer that does not begin with sequence 0; None: accepted (KIP-360).
        remembered: how many of a producer's last batches are recognised as duplicates (transactions D.4 S1).
        outlive_records: a producer's state is retained when its records are deleted (KAFKA-7190).
    """

    verification: bool = True
    begins_at_zero: bool = True
    unknown: ErrorCode | None = None
    outlive_records: bool = True
    remembered: int = REMEMBERED_BATCHES
