"""What cases share: values of records, and numbers with their reasons."""

from typing import Final

from understudy.exam import codes
from understudy.exam.exercise import BROKERS, TOPICS

MANY: Final = range(TOPICS["many"])
"""The partitions of the topic `many`."""
BEYOND: Final = 1_000
"""An offset beyond every log of a case."""
TURN_MS: Final = 100
"""How long each of two members is polled in turn: half of `POLL_MS`."""
BRIEF_MS: Final = 50
"""A poll that keeps a member in its group while something else happens: ours, a tenth of the delays in the cases."""
PROBE_MS: Final = 300
"""A poll between two of the records that are written until one is read: ours, so that few are written."""
COLLECT_MS: Final = 50
"""A linger time in which several sends become one batch: a send takes less than a millisecond."""
DELIVERY_MS: Final = 3_000
"""A delivery timeout for records that have to expire: ours, a second above the request timeout, its least in Kafka."""
SHORT: Final = {"delivery_timeout_ms": DELIVERY_MS, "request_timeout_ms": DELIVERY_MS // 3}
"""Options of a producer that repeats a request at least once within this time, although it got no response."""
TRANSACTION_DELIVERY_MS: Final = 4_000
"""The same in a transaction: ours, a second more, as its first records wait until their partitions are added."""
OUTCOME_MS: Final = 8_000
"""Time within which such records have an outcome: the longer of the two, `EXPIRY_MS`, and a second to spare."""
MOST_ATTEMPTS: Final = 10
"""Attempts from which on a library repeats what is refused for good: ours; Kafka's clients try once."""
FENCED_S: Final = 20
"""A step of the clock beyond broker.session.timeout.ms (9 s), after which a killed broker is out of the ISR."""
SOON_S: Final = 5.0
"""Time within which the cluster notices a client that closes: half of the session timeout, which would end it, too."""
LOOK_S: Final = 0.05
"""Pause between two looks at the cluster: many within `SOON_S`, and few enough for a busy machine."""


def numbered(count: int, prefix: str = "r") -> list[str]:
    """Return `r00`, `r01`, ...: distinct values whose order is visible.

    The counts of the cases are ours, where no reason is given: three to thirty records are several batches or reads,
    and few enough to print them. So are offsets in the middle of them.
    """
    return [f"{prefix}{number:02}" for number in range(count)]


def since(version: int) -> list[int]:
    """Return the versions for a fault that needs a field of this version."""
    return [version, codes.NEWEST]


def next_broker(broker: int) -> int:
    """Return the next of the exam's three brokers, 1 to 3."""
    return broker % BROKERS + 1
