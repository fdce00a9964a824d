"""The request of a step in a history, and the effects of its response."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from comparison.target import Target
from protocol.apis import ApiKey

Step = Mapping[str, Any]
"""Step in its saved form: ``{"do": "produce", "topic": "t0", ...}``; symbols replace ids that a cluster generates."""

PATIENCE_MS = 15_000
"""The timeout in requests to the controller: ours, so that no request of a history fails on it."""


class Settle(Enum):
    """Effect of a step that continues after its response, and must be complete before the next step."""

    NOTHING = "nothing"
    METADATA = "metadata"
    TRANSACTION = "transaction"
    GROUP = "group"
    CONSUMERS = "consumers"
    SHARES = "shares"
    STREAMS = "streams"
    CONNECTION = "connection"
    REPLICAS = "replicas"


@dataclass(slots=True)
class StepRequest:
    """Request of a step for one cluster. ``after`` gets the response and stores what later steps need."""

    key: ApiKey
    version: int
    request: Any
    connection: str = "0"
    after: Callable[[Any], None] | None = None
    settle: Settle = Settle.NOTHING
    about: str = ""  # the transactional id or group that has to settle
    reads: bool = False  # read-only: may be repeated until both responses agree
    answered: bool = True
    view: Callable[[Any], Any] | None = None  # reduces the response to the history's own resources
    parks: bool = False  # the response may wait for other members


Builder = Callable[[Target, Step], StepRequest]
