"""What a broker's release and settings decide about producers, for all logs of a data directory (transactions D.4)."""

from dataclasses import dataclass
from typing import Final

from protocol.errors import ErrorCode

REMEMBERED_BATCHES: Final = 5
"""How many batches of a producer are kept, and can be recognised as duplicates."""


@dataclass(slots=True)
class ProducerRules:
    """Rules that change while logs are open: every log looks at the one object of its environment.

    Attributes:
        verification: a batch that begins a transaction here must come from a producer that was verified (S3, KIP-890).
        begins_at_zero: under transaction.version 2 that batch has sequence 0, if the producer is unknown here (S5).
        unknown: the answer to a producer that is unknown here and does not begin with 0; None: it may go on (KIP-360).
        remembered: how many of a producer's last batches may be repeated (D.4 S1).
        outlive_records: what is known of a producer stays when its records are deleted (KAFKA-7190).
    """

    verification: bool = True
    begins_at_zero: bool = True
    unknown: ErrorCode | None = None
    outlive_records: bool = True
    remembered: int = REMEMBERED_BATCHES
